//! The signed text, written as a template.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::json::JsonPath;
use crate::location::Location;

/// What is signed, for example `{ts}.{body}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// One piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Body,
    /// The body with characters outside ASCII as lower-case `\uXXXX` escapes, and slashes as `\/`.
    BodyEscaped,
    /// The body with whole numbers of `weight` members written with one decimal.
    BodyWeightDecimals,
    BodySha256,
    BodyCrc32,
    Ts,
    Method,
    Url,
    Secret(Option<String>),
    Value {
        at: Location,
        optional: bool,
    },
    FormSorted,
    FormPhp,
    CanonicalRequest,
}

/// A template with an unknown or broken placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{{{0}}}` is not a placeholder of signed content")]
pub struct TemplateError(String);

impl Template {
    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn covers_body(&self) -> bool {
        let covers = |piece: &Piece| {
            matches!(
                piece,
                Piece::Body
                    | Piece::BodyEscaped
                    | Piece::BodyWeightDecimals
                    | Piece::BodySha256
                    | Piece::BodyCrc32
                    | Piece::FormSorted
                    | Piece::FormPhp
                    | Piece::CanonicalRequest
            )
        };
        self.pieces.iter().any(covers)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            if start > 0 {
                pieces.push(Piece::Text(rest[..start].to_owned()));
            }
            let tail = &rest[start + 1..];
            let end = tail
                .find('}')
                .ok_or_else(|| TemplateError(tail.to_owned()))?;
            pieces.push(placeholder(&tail[..end])?);
            rest = &tail[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let text = text.to_owned();
        Ok(Self { text, pieces })
    }
}

fn placeholder(name: &str) -> Result<Piece, TemplateError> {
    let wrong = || TemplateError(name.to_owned());
    Ok(match name {
        "body" => Piece::Body,
        "body_escaped" => Piece::BodyEscaped,
        "body_weight_decimals" => Piece::BodyWeightDecimals,
        "body_sha256" => Piece::BodySha256,
        "body_crc32" => Piece::BodyCrc32,
        "ts" => Piece::Ts,
        "method" => Piece::Method,
        "url" => Piece::Url,
        "secret" => Piece::Secret(None),
        "form_sorted" => Piece::FormSorted,
        "form_php" => Piece::FormPhp,
        "canonical_request" => Piece::CanonicalRequest,
        _ => {
            if let Some(part) = name.strip_prefix("secret:") {
                return Ok(Piece::Secret(Some(part.to_owned())));
            }
            let optional = name.ends_with('?');
            let name = name.strip_suffix('?').unwrap_or(name);
            let at = match name.strip_prefix("json:") {
                Some(path) => Location::Body(path.parse::<JsonPath>().map_err(|_| wrong())?),
                None => name.parse().map_err(|_| wrong())?,
            };
            Piece::Value { at, optional }
        }
    })
}

impl TryFrom<String> for Template {
    type Error = TemplateError;
    fn try_from(text: String) -> Result<Self, TemplateError> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_template_is_split_into_its_pieces() {
        let template: Template = "v0:{ts}:{body}".parse().unwrap();
        assert_eq!(
            template.pieces(),
            [
                Piece::Text("v0:".into()),
                Piece::Ts,
                Piece::Text(":".into()),
                Piece::Body
            ]
        );
        assert!(template.covers_body());
    }

    #[test]
    fn unknown_placeholders_are_refused() {
        for text in ["{nope}", "{", "{body", "{json:x}", "{header:}"] {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_template_text_is_survived(text in ".{0,60}") {
            if let Ok(template) = text.parse::<Template>() {
                prop_assert_eq!(template.as_str(), text);
            }
        }
    }
}
