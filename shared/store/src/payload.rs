//! Which bodies become a parsed payload, decided before the database is asked.
//!
//! PostgreSQL's jsonb refuses some valid JSON, and most readers refuse some more.
//! Such a body is stored as it arrived, without a payload and with a code that says
//! why. Whoever reads an event decides by that code, never by parsing again, so
//! every part of the product sees the same outcome.

use std::borrow::Cow;

mod form;
mod json;
mod numeric;

/// Deepest nesting of arrays and objects that gets a payload. It is what
/// `serde_json` reads by default, so every consumer in Rust can; PostgreSQL takes more.
pub const MAX_DEPTH: u32 = 127;

/// Why an event has a body but no payload. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The bytes are not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("the body is not JSON")]
    NotJson,
    /// A string holds U+0000, which PostgreSQL's text cannot.
    #[error("a string in the body holds a NUL")]
    NulEscape,
    /// A string holds half of a surrogate pair, which is no character.
    #[error("a string in the body holds half of a surrogate pair")]
    LoneSurrogate,
    /// Arrays and objects are nested more than [`MAX_DEPTH`] deep.
    #[error("the body is nested too deeply")]
    TooDeep,
    /// A number has more digits than PostgreSQL's numeric.
    #[error("a number in the body is out of range")]
    NumberOutOfRange,
    /// The body looked fit, and the database refused it all the same.
    #[error("the database refused the body as a payload")]
    RejectedByDatabase,
}

impl PayloadError {
    /// The code stored with the event.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::NulEscape => "nul_escape",
            Self::LoneSurrogate => "lone_surrogate",
            Self::TooDeep => "too_deep",
            Self::NumberOutOfRange => "number_out_of_range",
            Self::RejectedByDatabase => "rejected_by_database",
        }
    }
}

/// What [`check`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadCheck<'a> {
    /// JSON text that jsonb takes.
    Fits(&'a str),
    /// Stored without a payload.
    Refused(PayloadError),
}

/// Checks in one pass, without building anything, whether a body is JSON that the
/// database takes as it is.
#[must_use]
pub fn check(body: &[u8]) -> PayloadCheck<'_> {
    let Ok(text) = std::str::from_utf8(body) else {
        return PayloadCheck::Refused(PayloadError::NotUtf8);
    };
    match json::check(text) {
        Ok(()) => PayloadCheck::Fits(text),
        Err(error) => PayloadCheck::Refused(error),
    }
}

/// A body, read as its media type says. Borrowed where the body is the payload's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<'a>(Result<Option<Cow<'a, str>>, PayloadError>);

impl<'a> Parsed<'a> {
    /// The payload as JSON text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_ref().ok()?.as_deref()
    }

    /// The payload itself; borrowed where the body is its own text.
    #[must_use]
    pub fn into_text(self) -> Option<Cow<'a, str>> {
        self.0.ok().flatten()
    }

    /// Why there is none.
    #[must_use]
    pub fn error(&self) -> Option<PayloadError> {
        self.0.as_ref().err().copied()
    }
}

/// Reads a body: a form becomes an object, an empty body is neither payload nor
/// error, and everything else is taken for JSON, since providers mislabel it.
///
/// `media_type` is the type without parameters, in lower case.
#[must_use]
pub fn parse<'a>(media_type: Option<&str>, body: &'a [u8]) -> Parsed<'a> {
    if body.is_empty() {
        return Parsed(Ok(None));
    }
    if media_type == Some("application/x-www-form-urlencoded") {
        return Parsed(form::to_json(body).map(|json| Some(Cow::Owned(json))));
    }
    match check(body) {
        PayloadCheck::Fits(text) => Parsed(Ok(Some(Cow::Borrowed(text)))),
        PayloadCheck::Refused(error) => Parsed(Err(error)),
    }
}
