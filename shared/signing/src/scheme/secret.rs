//! The `[secret]` table.

use serde::{Deserialize, Serialize};

use crate::scheme::defaults::is_false;

/// How the secret text becomes a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretRule {
    /// How the text is decoded.
    pub encoding: SecretEncoding,
    /// A prefix that is taken off before decoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Whether the prefix must be there.
    #[serde(skip_serializing_if = "is_false")]
    pub prefix_required: bool,
    /// How a text without the prefix is decoded, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_prefix: Option<SecretEncoding>,
    /// The member of a JSON secret that holds the key. A secret that is no JSON object is the
    /// key itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Rewriting of the text before it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalise: Option<Normalise>,
    /// A hash of the text is the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derive: Option<Derive>,
    /// The exact number of characters the text must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
}

/// How the secret text is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretEncoding {
    /// The text itself is the key.
    #[default]
    Utf8,
    /// Standard base64.
    Base64,
    /// Hexadecimal digits.
    Hex,
    /// A PEM public key or certificate, or its DER as base64.
    PublicKey,
    /// A JSON web key, or a set of them.
    Jwk,
}

/// Rewriting of the secret text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalise {
    /// Unicode compatibility decomposition.
    Nfkd,
    /// HTML entities of `&`, `<`, `>` and quotes are decoded.
    Html,
}

/// Key derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Derive {
    /// The key is the SHA-1 digest of the text.
    Sha1,
}
