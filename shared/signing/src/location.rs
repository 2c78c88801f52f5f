//! Where a value is found in a request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::json::JsonPath;

/// One place in a request, written `header:NAME`, `body:$.path`, `form:NAME` and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Location {
    /// A header; `header:a|b` takes the first of the two that is sent. A name ending in `*`
    /// means every header that begins so.
    Header(Vec<String>),
    /// A value of the JSON body.
    Body(JsonPath),
    /// A field of the form body.
    Form(String),
    /// A parameter of the URL's query.
    Query(String),
    /// A claim of the verified token.
    Claim(String),
    /// A named or numbered part of the signature header.
    Signature(String),
    /// A value of a JSON document held by a form field: `form-json:FIELD$.path`.
    FormJson(String, JsonPath),
    /// An element of base64-encoded XML held by a form field: `form-xml:FIELD/element`.
    FormXml(String, String),
    /// The one top-level key of the JSON body beside a known one: `other-key:NAME`.
    OtherKey(String),
}

/// A location that is not written in one of the known forms.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a location: write header:NAME, body:$.path, form:NAME, query:NAME, claim:NAME or signature:KEY"
)]
pub struct LocationError(String);

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let wrong = || LocationError(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        if name.trim().is_empty() {
            return Err(wrong());
        }
        let owned = || name.to_owned();
        Ok(match kind {
            "header" => Self::Header(name.split('|').map(str::to_owned).collect()),
            "body" => Self::Body(name.parse().map_err(|_| wrong())?),
            "form" => Self::Form(owned()),
            "query" => Self::Query(owned()),
            "claim" => Self::Claim(owned()),
            "signature" => Self::Signature(owned()),
            "other-key" => Self::OtherKey(owned()),
            "form-json" => {
                let at = name.find('$').ok_or_else(wrong)?;
                let path = name[at..].parse().map_err(|_| wrong())?;
                Self::FormJson(name[..at].to_owned(), path)
            }
            "form-xml" => {
                let (field, element) = name.split_once('/').ok_or_else(wrong)?;
                Self::FormXml(field.to_owned(), element.to_owned())
            }
            _ => return Err(wrong()),
        })
    }
}

impl TryFrom<String> for Location {
    type Error = LocationError;
    fn try_from(text: String) -> Result<Self, LocationError> {
        text.parse()
    }
}

impl From<Location> for String {
    fn from(location: Location) -> Self {
        location.to_string()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(names) => write!(f, "header:{}", names.join("|")),
            Self::Body(path) => write!(f, "body:{path}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Claim(name) => write!(f, "claim:{name}"),
            Self::Signature(name) => write!(f, "signature:{name}"),
            Self::FormJson(field, path) => write!(f, "form-json:{field}{path}"),
            Self::FormXml(field, element) => write!(f, "form-xml:{field}/{element}"),
            Self::OtherKey(known) => write!(f, "other-key:{known}"),
        }
    }
}

/// How a value of the event is put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ValueRule {
    /// One place.
    At(Location),
    /// Several places joined into one text; a part written with a closing `?` may be absent.
    Join(JoinRule),
}

/// Parts joined into one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRule {
    /// The text between two parts.
    pub join: String,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a joined value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Part {
    /// Where the part is found.
    pub at: Location,
    /// Whether the value may be put together without it.
    pub optional: bool,
}

impl TryFrom<String> for Part {
    type Error = LocationError;
    fn try_from(text: String) -> Result<Self, LocationError> {
        let optional = text.ends_with('?');
        let at = text.strip_suffix('?').unwrap_or(&text).parse()?;
        Ok(Self { at, optional })
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        format!("{}{}", part.at, if part.optional { "?" } else { "" })
    }
}

impl ValueRule {
    /// Every location the rule reads.
    pub fn locations(&self) -> impl Iterator<Item = &Location> {
        let (one, many) = match self {
            Self::At(location) => (Some(location), None),
            Self::Join(rule) => (None, Some(&rule.parts)),
        };
        one.into_iter()
            .chain(many.into_iter().flatten().map(|part| &part.at))
    }
}

impl fmt::Display for ValueRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(location) => location.fmt(f),
            Self::Join(rule) => {
                let parts: Vec<_> = rule.parts.iter().cloned().map(String::from).collect();
                f.write_str(&parts.join(" + "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_written_the_way_they_are_read() {
        for text in [
            "header:svix-id|webhook-id",
            "body:$.data.items[0].id",
            "form:alert_id",
            "query:signature",
            "claim:jti",
            "signature:t",
            "form-json:mandrill_events$[*]._id",
            "form-xml:bt_payload/kind",
            "other-key:update_id",
        ] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "header:",
            "cookie:x",
            "body:id",
            "body:$.",
            "form-xml:x",
        ] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }
}
