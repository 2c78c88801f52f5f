//! How signatures are written.

use base64::Engine as _;
use base64::engine::general_purpose::{
    STANDARD, STANDARD_PAD_INDIFFERENT, URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT,
};
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

/// How base64 is read where bytes are compared: official libraries differ by their language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoding {
    /// The standard alphabet, with or without padding.
    #[default]
    Standard,
    /// The standard alphabet with its padding, as Python reads it.
    Padded,
    /// Either alphabet, with or without padding, blanks around it, as JavaScript reads it.
    Lenient,
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

    /// Reads `text`, standard base64 the way `decoding` says.
    pub(crate) fn decode_as(self, decoding: Decoding, text: &str) -> Option<Vec<u8>> {
        match (self, decoding) {
            (Self::Base64, Decoding::Padded) => STANDARD.decode(text).ok(),
            (Self::Base64, Decoding::Lenient) => {
                let url_safe = text.trim().replace('+', "-").replace('/', "_");
                URL_SAFE_PAD_INDIFFERENT.decode(url_safe).ok()
            }
            _ => self.decode(text),
        }
    }
}
