//! The `[signature]` table.

use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::encoding::{Compare, Decoding, Encoding};
use crate::json::JsonPath;
use crate::location::Location;
use crate::scheme::defaults::{is_default, is_false};
use crate::scheme::one_or_many;
use crate::template::Template;

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
    /// How base64 is read where bytes are compared.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decoding: Decoding,
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
