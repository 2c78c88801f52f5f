//! Headers that a subscription adds to its webhooks.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::request::FRAMING;

/// Most headers of one subscription: a key, a tenant, a route, and room.
pub const MAX_CUSTOM_HEADERS: usize = 20;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// Longest value, in bytes. Tokens are a few hundred bytes, signed ones up to some 2 kB,
/// and servers commonly refuse a line over 8 kB.
pub const MAX_VALUE_BYTES: usize = 4096;

/// Names that are ours alone. The body is what it is, so a claim about its coding would
/// be wrong; and no coding of the answer is undone.
const OURS: [&str; 6] = [
    "accept-encoding",
    "content-encoding",
    "content-type",
    "traceparent",
    "tracestate",
    "user-agent",
];

/// Beginnings of names that are ours alone, now and later.
const OUR_PREFIXES: [&str; 3] = ["webhook-", "ce-", "hookstead-"];

/// A subscription's own headers: names that are not ours, each once.
///
/// Debug output has the number of them: values are often credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CustomHeaders(Vec<(HeaderName, HeaderValue)>);

/// Why headers cannot be saved. Says nothing of their values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CustomHeaderError {
    /// There are more than [`MAX_CUSTOM_HEADERS`].
    #[error("there may be at most 20 headers")]
    TooMany,
    /// A name is no header name, or too long.
    #[error("the name of header {number} must be 1 to 128 letters, digits and hyphens")]
    InvalidName {
        /// Which one, from 1.
        number: usize,
    },
    /// A value cannot stand in a header, or is too long.
    #[error(
        "the value of header {number} must be at most 4096 bytes of printable ASCII, without \
         blanks around it"
    )]
    InvalidValue {
        /// Which one, from 1.
        number: usize,
    },
    /// A name is one that Hookstead sets itself.
    #[error("header {number} has a name that only Hookstead sets")]
    ReservedName {
        /// Which one, from 1.
        number: usize,
    },
    /// A name is one that belongs to the connection.
    #[error("header {number} belongs to the connection and cannot be set")]
    ConnectionHeader {
        /// Which one, from 1.
        number: usize,
    },
    /// A name is there twice, perhaps in another case.
    #[error("header {number} is there twice")]
    DuplicateName {
        /// Which one, from 1.
        number: usize,
    },
}

impl CustomHeaderError {
    /// Every code, for the reference page.
    pub const CODES: [&str; 6] = [
        "too_many_headers",
        "invalid_header_name",
        "invalid_header_value",
        "reserved_header",
        "connection_header",
        "duplicate_header",
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooMany => "too_many_headers",
            Self::InvalidName { .. } => "invalid_header_name",
            Self::InvalidValue { .. } => "invalid_header_value",
            Self::ReservedName { .. } => "reserved_header",
            Self::ConnectionHeader { .. } => "connection_header",
            Self::DuplicateName { .. } => "duplicate_header",
        }
    }
}

impl CustomHeaders {
    /// Checks headers that are about to be saved.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with the number of the header.
    pub fn parse<N: AsRef<str>, V: AsRef<str>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, CustomHeaderError> {
        let mut parsed: Vec<(HeaderName, HeaderValue)> = Vec::new();
        for (at, (name, value)) in headers.into_iter().enumerate() {
            if parsed.len() == MAX_CUSTOM_HEADERS {
                return Err(CustomHeaderError::TooMany);
            }
            let header = one(at + 1, name.as_ref(), value.as_ref())?;
            if parsed.iter().any(|(name, _)| *name == header.0) {
                return Err(CustomHeaderError::DuplicateName { number: at + 1 });
            }
            parsed.push(header);
        }
        Ok(Self(parsed))
    }

    /// Reads headers that are stored, leaving out whatever could not be saved: ours win,
    /// and of two of the same name the first.
    pub fn stored<N: AsRef<str>, V: AsRef<str>>(headers: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut kept: Vec<(HeaderName, HeaderValue)> = Vec::new();
        for (name, value) in headers {
            let Ok(header) = one(0, name.as_ref(), value.as_ref()) else {
                continue;
            };
            let twice = kept.iter().any(|(name, _)| *name == header.0);
            if !twice && kept.len() < MAX_CUSTOM_HEADERS {
                kept.push(header);
            }
        }
        Self(kept)
    }

    /// The names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn to_map(&self) -> HeaderMap {
        self.0.iter().cloned().collect()
    }
}

fn one(
    number: usize,
    name: &str,
    value: &str,
) -> Result<(HeaderName, HeaderValue), CustomHeaderError> {
    let invalid_name = CustomHeaderError::InvalidName { number };
    // HTTP allows stranger names; no sensible header has one, and some servers choke.
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(letters) {
        return Err(invalid_name);
    }
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid_name)?;
    // Servers behind CGI take `_` for `-`, so a name counts in either spelling.
    let spelled = name.as_str().replace('_', "-");
    if FRAMING.contains(&spelled.as_str()) {
        return Err(CustomHeaderError::ConnectionHeader { number });
    }
    let ours = OUR_PREFIXES
        .iter()
        .any(|prefix| spelled.starts_with(prefix));
    if ours || OURS.contains(&spelled.as_str()) {
        return Err(CustomHeaderError::ReservedName { number });
    }
    let invalid_value = CustomHeaderError::InvalidValue { number };
    let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if value.len() > MAX_VALUE_BYTES || value.trim() != value || !value.bytes().all(printable) {
        return Err(invalid_value);
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| invalid_value)?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomHeaders({})", self.0.len())
    }
}
