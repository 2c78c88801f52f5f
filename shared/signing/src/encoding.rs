//! How signatures are written.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_PAD_INDIFFERENT, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The text form of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Two hexadecimal digits a byte, lower case when written by us.
    #[default]
    Hex,
    /// The standard alphabet with padding.
    Base64,
    /// The URL-safe alphabet without padding.
    Base64url,
}

/// How a received signature is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The encoded text must be the same, so upper-case hex and missing padding are refused.
    #[default]
    Text,
    /// The decoded bytes must be the same.
    Bytes,
}

impl Encoding {
    /// Writes `bytes` in this encoding.
    #[must_use]
    pub fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => hex::encode(bytes),
            Self::Base64 => STANDARD.encode(bytes),
            Self::Base64url => URL_SAFE_NO_PAD.encode(bytes),
        }
    }

    /// Reads `text`; hex in either case, standard base64 with or without padding.
    #[must_use]
    pub fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD_PAD_INDIFFERENT.decode(text).ok(),
            Self::Base64url => URL_SAFE_NO_PAD.decode(text).ok(),
        }
    }
}
