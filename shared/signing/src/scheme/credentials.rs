//! The `[token]`, `[basic]` and `[jwt]` tables.

use serde::{Deserialize, Serialize};

use crate::encoding::Encoding;
use crate::json::JsonPath;
use crate::location::Location;
use crate::scheme::defaults::is_false;
use crate::scheme::one_or_many;

/// A fixed token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRule {
    /// Where the token may be; the first place that holds one counts.
    #[serde(with = "one_or_many")]
    pub from: Vec<Location>,
    /// The word before the token in a header, compared without regard to case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The token sits in each element of an array and all of them must carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<JsonPath>,
}

/// HTTP basic credentials; the secret is `user:password`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicRule {
    /// Where the credentials are.
    pub from: Location,
    /// Whether the word `Basic` must be written exactly so.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exact_word: bool,
}

/// A signed token with claims about the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtRule {
    /// Where the token is.
    pub from: Location,
    /// The word before the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Allowed values of the token's `alg`.
    pub algorithms: Vec<String>,
    /// The claim with the hash of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<HashClaim>,
    /// The claim with the hash of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_hash: Option<HashClaim>,
    /// The issuer the token must name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The member of the JSON secret that holds the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_from_secret: Option<String>,
    /// Claims that must be present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Clock difference forgiven when `exp` and `nbf` are checked, in seconds.
    #[serde(default)]
    pub leeway_s: u32,
}

/// A claim that holds a SHA-256.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashClaim {
    /// Name of the claim.
    pub claim: String,
    /// How the hash is written.
    pub encoding: Encoding,
    /// Whether the claim must be absent when there is nothing to hash.
    #[serde(default, skip_serializing_if = "is_false")]
    pub absent_when_empty: bool,
}
