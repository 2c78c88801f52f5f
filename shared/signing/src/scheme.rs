//! A signature scheme as data.

mod credentials;
mod defaults;
mod one_or_many;
mod secret;
mod signature;
mod timestamp;

use serde::{Deserialize, Serialize};

use crate::handshake::HandshakeRule;
use crate::location::{Location, ValueRule};
use crate::validate::SchemeError;

pub use credentials::{BasicRule, HashClaim, JwtRule, TokenRule};
pub use secret::{Derive, Normalise, SecretEncoding, SecretRule};
pub use signature::{Format, Labels, MAX_SIGNATURES, SignatureRule, Step};
pub use timestamp::{DEFAULT_TOLERANCE_S, Limit, NoLimit, NumberForm, TimestampRule, Unit};

/// Everything needed to verify, sign and read one provider's requests.
///
/// Exactly one of `signature`, `token`, `basic` and `jwt` is set. docs/schemes.md explains every
/// field with an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// The provider and scheme in words.
    pub name: String,
    /// Which bytes are signed when the request is compressed.
    #[serde(default)]
    pub signs: Signs,
    /// A signature over a text built from the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureRule>,
    /// A fixed token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenRule>,
    /// HTTP basic credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicRule>,
    /// A signed token with claims about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwt: Option<JwtRule>,
    /// Fields that must hold one of a few values before anything else is looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<RequireRule>,
    /// The signed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<TimestampRule>,
    /// How the secret text becomes a key.
    #[serde(default)]
    pub secret: SecretRule,
    /// Where the event's id, type and time are.
    #[serde(default)]
    pub event: EventRule,
    /// Requests that must be answered in a special way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handshake: Vec<HandshakeRule>,
    /// The body of the answer to a stored event, where the provider reads it. An empty text is an
    /// answer without a body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledge: Option<String>,
    /// How well the facts are known. Only built-in kinds carry this.
    #[serde(default)]
    pub facts: Facts,
}

/// Which bytes a compressed request is signed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signs {
    /// The bytes on the wire.
    #[default]
    Wire,
    /// The bytes before compression.
    Decoded,
}

/// A field that must be there, or hold one of a few values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequireRule {
    /// The field.
    pub at: Location,
    /// Its allowed values, compared with exact case. Without any, the field must only be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
}

impl RequireRule {
    /// Whether the field may hold `value`.
    pub(crate) fn allows(&self, value: &str) -> bool {
        self.one_of.is_empty() || self.one_of.iter().any(|allowed| allowed == value)
    }
}

/// Where the event's own facts are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventRule {
    /// The provider's id of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ValueRule>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<ValueRule>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<ValueRule>,
    /// What tells two arrivals apart, where it is not the id alone. `[*]` takes the whole batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<ValueRule>,
    /// The form field that holds the JSON document when the body is a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_in_form: Option<String>,
}

/// How well the facts of a built-in kind are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Facts {
    /// Of the signature.
    pub signature: Confidence,
    /// Of ids, times and handshakes.
    pub delivery: Confidence,
    /// One sentence worth knowing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Read in, or run against, an official library.
    OfficialSdk,
    /// Read in the provider's documentation.
    OfficialDocs,
    /// Read in another project.
    ThirdParty,
    /// Not confirmed against a source.
    #[default]
    Unverified,
}

impl Scheme {
    /// Reads and checks a scheme written as TOML.
    pub fn from_toml(text: &str) -> Result<Self, SchemeError> {
        let scheme: Self =
            toml::from_str(text).map_err(|error| SchemeError::syntax(error.message()))?;
        scheme.validate()?;
        Ok(scheme)
    }

    /// Reads and checks a scheme written as JSON, the form the database holds.
    pub fn from_json(text: &str) -> Result<Self, SchemeError> {
        let scheme: Self =
            serde_json::from_str(text).map_err(|error| SchemeError::syntax(&error.to_string()))?;
        scheme.validate()?;
        Ok(scheme)
    }

    /// Writes the scheme as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a scheme has text keys only, so it is always JSON")
    }
}
