//! A signature scheme as data.

use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::encoding::{Compare, Encoding};
use crate::handshake::HandshakeRule;
use crate::json::JsonPath;
use crate::location::{Location, ValueRule};
use crate::template::Template;
use crate::validate::SchemeError;

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

/// A signature over a text built from the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureRule {
    /// Keyed hash, plain hash or public-key algorithm.
    pub algorithm: Algorithm,
    /// Where signatures are; any one that matches is enough.
    #[serde(with = "one_or_many")]
    pub from: Vec<Location>,
    /// The grammar of the value.
    #[serde(default)]
    pub format: Format,
    /// The text before every signature, compared with exact case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// What stands between entries of a list or of pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The key of signatures among pairs, or the version of a versioned list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether blanks around entries and header values are dropped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trim: bool,
    /// What is done with entries that carry no or another version label.
    #[serde(default, skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Whether only the first listed signature counts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first_only: bool,
    /// Whether the header must be written exactly as we would write it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exact: bool,
    /// Most signatures looked at; more are refused unread.
    #[serde(default = "default_max_signatures")]
    pub max: usize,
    /// How the signature is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// Whether the written text or the bytes behind it are compared.
    #[serde(default)]
    pub compare: Compare,
    /// The signed text; of several, any may be the one.
    #[serde(default, with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Template>,
    /// The signed text of requests that carry no timestamp, where the timestamp is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_without_timestamp: Option<Template>,
    /// Signatures sit in each element of an array and all of them must verify. Paths of `from`
    /// and `content` then start at the element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<JsonPath>,
    /// The members of a JSON secret that hold the key of the first, second … place of `from`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Whether an empty body is refused, as some official libraries do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refuse_empty_body: bool,
    /// Whether a body that is not UTF-8 is refused, as some official libraries do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refuse_non_utf8_body: bool,
    /// A named procedure for schemes a template cannot express.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// Most signatures of one request, unless a scheme says otherwise: a sender rolling keys sends
/// two or three, and every entry costs a comparison.
pub const MAX_SIGNATURES: usize = 20;

fn default_max_signatures() -> usize {
    MAX_SIGNATURES
}

/// The grammar of a signature value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The whole value is one signature.
    #[default]
    Single,
    /// Entries between separators, each with the prefix; others are skipped.
    List,
    /// `version,signature` entries between blanks, as Standard Webhooks writes them.
    Versioned,
    /// `key=value` pairs between separators.
    Pairs,
    /// Blank-separated groups of pairs, each with its own timestamp.
    Groups,
    /// A timestamp, then signatures, between separators.
    Positional,
}

/// What is done with entries of a versioned list that carry another label or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// They are skipped.
    #[default]
    Strict,
    /// Entries without any label count too.
    Optional,
    /// Labels are ignored.
    Ignored,
}

/// Procedures for schemes a template cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// URL variants with and without port, sorted form fields, algorithm by header.
    Twilio,
    /// A signature per public key over the base64 payload of a form.
    Braintree,
    /// The field list depends on the message type, the algorithm on its version.
    AwsSns,
    /// The algorithm depends on a header, the certificate's URL is checked.
    Paypal,
}

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

/// A field that must hold one of a few values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequireRule {
    /// The field.
    pub at: Location,
    /// Its allowed values, compared with exact case.
    pub one_of: Vec<String>,
}

/// The signed time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampRule {
    /// Where it is.
    pub from: Location,
    /// What it counts.
    #[serde(default)]
    pub unit: Unit,
    /// Largest accepted age.
    #[serde(default)]
    pub past_s: Limit,
    /// Largest accepted lead.
    #[serde(default)]
    pub future_s: Limit,
    /// Whether an age equal to the limit is already too old.
    #[serde(default, skip_serializing_if = "is_false")]
    pub past_exclusive: bool,
    /// Whether the number is signed in its shortest form, whatever was sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub canonical: bool,
    /// Whether a request may come without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Earliest accepted value, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_s: Option<i64>,
}

/// What a timestamp counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds since 1970.
    #[default]
    UnixS,
    /// Milliseconds since 1970.
    UnixMs,
    /// ISO 8601 date and time; without a zone it means UTC.
    Iso8601,
}

/// Window used by custom schemes that name none: what most official libraries use.
pub const DEFAULT_TOLERANCE_S: u32 = 300;

/// A bound in seconds, or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// At most this many seconds.
    Seconds(u32),
    /// No bound.
    Unbounded(NoLimit),
}

/// The word `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoLimit {
    /// No bound.
    None,
}

impl Limit {
    pub(crate) fn seconds(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Unbounded(NoLimit::None) => None,
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::Seconds(DEFAULT_TOLERANCE_S)
    }
}

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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One value, or a list of them.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }

    pub(super) fn serialize<S, T>(values: &[T], to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
        T: Serialize,
    {
        match values {
            [one] => one.serialize(to),
            many => many.serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: TryFrom<String>,
        T::Error: std::fmt::Display,
    {
        let texts = match OneOrMany::deserialize(from)? {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        texts
            .into_iter()
            .map(|text| T::try_from(text).map_err(serde::de::Error::custom))
            .collect()
    }
}
