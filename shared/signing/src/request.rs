//! The request as the provider sent it.

use std::fmt;

use crate::Secret;

/// Header lines in arrival order. Names compare without regard to ASCII case.
///
/// Debug output has the names alone: values may be tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    lines: Vec<(String, String)>,
}

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Collects `(name, value)` pairs, keeping their order and any repeats.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let lines = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            lines: lines.collect(),
        }
    }

    /// Adds one header line.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.lines.push((name.into(), value.into()));
    }

    /// Every value sent under `name`, in arrival order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter(move |(line, _)| line.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The first value sent under `name`.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.lines
            .iter()
            .find(|(line, _)| line.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// All lines as `(name, value)`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.lines.iter().map(|(name, _)| name))
            .finish()
    }
}

/// One HTTP request, borrowed from the caller.
///
/// Debug output leaves out header values, query and body.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Method as sent, upper case.
    pub method: &'a str,
    /// Public URL as the provider called it, query included.
    pub url: &'a str,
    /// Header lines.
    pub headers: &'a Headers,
    /// Body bytes exactly as they came over the wire.
    pub body: &'a [u8],
    /// The body after `Content-Encoding` was undone, when there was one.
    pub decoded_body: Option<&'a [u8]>,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &url)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Request<'a> {
    /// The body people mean: decoded where it was compressed.
    #[must_use]
    pub fn plain_body(&self) -> &'a [u8] {
        self.decoded_body.unwrap_or(self.body)
    }

    pub(crate) fn is_form(&self) -> bool {
        self.media_type_is("application/x-www-form-urlencoded")
    }

    pub(crate) fn media_type_is(&self, wanted: &str) -> bool {
        self.headers
            .first("content-type")
            .and_then(|value| value.split(';').next())
            .is_some_and(|media| media.trim().eq_ignore_ascii_case(wanted))
    }

    pub(crate) fn query(&self) -> &'a str {
        let without_fragment = self.url.split('#').next().unwrap_or_default();
        without_fragment
            .split_once('?')
            .map_or("", |(_, query)| query)
    }
}

/// A secret that may have signed the request, with the label of its version.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Version label, for example `AWSCURRENT`.
    pub label: &'a str,
    /// The secret itself.
    pub secret: &'a Secret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_holds_nothing_confidential() {
        let headers = Headers::from_pairs([("Authorization", "Bearer CANARY1")]);
        let request = Request {
            method: "POST",
            url: "https://a.test/in?token=CANARY2",
            headers: &headers,
            body: b"CANARY3",
            decoded_body: Some(b"CANARY4"),
        };
        let text = format!("{request:?}");
        assert!(!text.contains("CANARY"), "{text}");
        assert!(text.contains("Authorization"), "{text}");
    }
}
