//! Looking values up in a request.

use std::borrow::Cow;
use std::cell::OnceCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;

use crate::form;
use crate::json::{self, JsonPath};
use crate::location::Location;
use crate::request::Request;
use crate::scheme::{Scheme, Signs, TimestampRule};

/// A request seen through a scheme. Bodies are parsed only when a value inside is asked for.
pub(crate) struct View<'a> {
    pub(crate) scheme: &'a Scheme,
    pub(crate) request: &'a Request<'a>,
    /// Claims of the verified token, as JSON.
    pub(crate) claims: Option<&'a str>,
    json: OnceCell<Option<Cow<'a, str>>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(scheme: &'a Scheme, request: &'a Request<'a>) -> Self {
        Self {
            scheme,
            request,
            claims: None,
            json: OnceCell::new(),
        }
    }

    /// The bytes the sender signed.
    pub(crate) fn signed_body(&self) -> &'a [u8] {
        match self.scheme.signs {
            Signs::Wire => self.request.body,
            Signs::Decoded => self.request.plain_body(),
        }
    }

    /// The JSON document: the body, or the form field that holds it.
    pub(crate) fn json(&self) -> Option<&str> {
        self.json.get_or_init(|| self.find_json()).as_deref()
    }

    fn find_json(&self) -> Option<Cow<'a, str>> {
        let body = self.request.plain_body();
        if let Some(field) = &self.scheme.event.json_in_form {
            if self.request.is_form() {
                return form::value(body, field).map(Cow::Owned);
            }
            if self.request.media_type_is("multipart/form-data") {
                return form::multipart_value(body, field).map(Cow::Borrowed);
            }
        }
        std::str::from_utf8(body).ok().map(Cow::Borrowed)
    }

    /// The value at `at`, where it holds text, a number or a truth value.
    pub(crate) fn text(&self, at: &Location) -> Option<String> {
        match at {
            Location::Header(_) => self.header(at).map(str::to_owned),
            Location::Body(path) => json_text(self.json()?, path),
            Location::Form(name) => form::value(self.request.plain_body(), name),
            Location::Query(name) => form::value(self.request.query().as_bytes(), name),
            Location::Claim(name) => json_text(self.claims?, &member_path(name)?),
            Location::FormJson(field, path) => {
                json_text(&form::value(self.request.plain_body(), field)?, path)
            }
            Location::FormXml(field, element) => {
                xml_text(&form::value(self.request.plain_body(), field)?, element)
            }
            Location::OtherKey(known) => json::other_key(self.json()?, known),
            Location::Signature(_) => None,
        }
    }

    /// Whether the JSON body has a value of any sort at `at`; `body:$` is the body itself.
    pub(crate) fn holds(&self, at: &Location) -> bool {
        match (at, self.json()) {
            (Location::Body(path), Some(text)) => json::pick_one(text, path).is_some(),
            _ => false,
        }
    }

    /// Whether a header is sent several times.
    pub(crate) fn repeats(&self, at: &Location) -> bool {
        matches!(at, Location::Header(_)) && self.texts(at).len() > 1
    }

    /// The text of a time that no header repeats. Bytes of the body that are no text are replaced:
    /// the signature has covered them, and the time is elsewhere.
    pub(crate) fn signed_time(&self, rule: &TimestampRule) -> Option<String> {
        let Location::Body(path) = &rule.from else {
            return self.text(&rule.from);
        };
        let lossy = String::from_utf8_lossy(self.request.plain_body());
        let raw = json::pick_one(self.json().unwrap_or(&lossy), path)?;
        if rule.number && raw.get().starts_with('"') {
            return Some(raw.get().to_owned());
        }
        json::scalar(raw)
    }

    /// The value of the first header of `at` that is sent.
    pub(crate) fn header(&self, at: &Location) -> Option<&'a str> {
        let Location::Header(names) = at else {
            return None;
        };
        let value = names
            .iter()
            .find_map(|name| self.request.headers.first(name))?;
        let trim = self.scheme.signature.as_ref().is_some_and(|rule| rule.trim);
        Some(if trim { value.trim() } else { value })
    }

    /// Every value at `at`, for places where a repeat means something.
    pub(crate) fn texts(&self, at: &Location) -> Vec<Cow<'a, str>> {
        let Location::Header(names) = at else {
            return self.text(at).map(Cow::Owned).into_iter().collect();
        };
        let headers = self.request.headers;
        for name in names {
            let found: Vec<_> = match name.strip_suffix('*') {
                Some(start) => headers
                    .iter()
                    .filter(|(line, _)| starts_with(line, start))
                    .map(|(_, value)| Cow::Borrowed(value))
                    .collect(),
                None => headers
                    .iter()
                    .filter(|(line, _)| line.eq_ignore_ascii_case(name))
                    .map(|(_, value)| Cow::Borrowed(value))
                    .collect(),
            };
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

fn starts_with(name: &str, start: &str) -> bool {
    name.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

fn json_text(text: &str, path: &JsonPath) -> Option<String> {
    json::pick_one(text, path).and_then(json::scalar)
}

pub(crate) fn member_path(name: &str) -> Option<JsonPath> {
    format!("$[\"{name}\"]").parse().ok()
}

/// The text of the first `<element>` in base64-encoded XML.
fn xml_text(encoded: &str, element: &str) -> Option<String> {
    let packed: String = encoded.split_whitespace().collect();
    let xml = String::from_utf8(STANDARD_PAD_INDIFFERENT.decode(packed).ok()?).ok()?;
    let start = xml.find(&format!("<{element}"))?;
    let tail = &xml[start + 1 + element.len()..];
    if !tail.starts_with(['>', ' ']) {
        return None;
    }
    let (_, tail) = tail.split_once('>')?;
    let (text, _) = tail.split_once('<')?;
    Some(text.trim().to_owned())
}
