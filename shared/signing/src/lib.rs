//! Webhook signature schemes as data: verify, sign, extract, answer handshakes. Pure.
//!
//! A [`Scheme`] says where a provider puts its signature, what it signs and where the event's id,
//! type and time are. [`builtin`] has the providers we know; users write further ones in TOML
//! (docs/schemes.md). Nothing here reads a clock, a file or the network.
//!
//! ```
//! use hookstead_signing::{Candidate, Headers, Request, Secret, builtin, extract, verify};
//!
//! let scheme = builtin("github").unwrap();
//! let secret = Secret::new("It's a Secret to Everybody").unwrap();
//! let headers = Headers::from_pairs([
//!     ("X-GitHub-Event", "push"),
//!     ("X-Hub-Signature-256",
//!      "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
//! ]);
//! let request = Request {
//!     method: "POST",
//!     url: "https://hooks.example.test/webhooks/github",
//!     headers: &headers,
//!     body: b"Hello, World!",
//!     decoded_body: None,
//! };
//! let candidates = [Candidate { label: "current", secret: &secret }];
//! let now = time::OffsetDateTime::UNIX_EPOCH;
//! let verified = verify(scheme, &request, &candidates, now, None).unwrap();
//! assert_eq!(verified.label, "current");
//! assert_eq!(extract(scheme, &request, &verified).event_type.as_deref(), Some("push"));
//! ```

mod algorithm;
mod builtin;
mod credentials;
mod docs;
mod encoding;
mod explain;
mod extract;
mod form;
mod grammar;
mod handshake;
mod hints;
mod json;
mod jwt;
mod location;
mod plan;
mod public_key;
mod reason;
mod request;
mod sample;
mod scheme;
mod secret;
mod sign;
mod step;
mod template;
mod timestamp;
mod validate;
pub mod vectors;
mod verify;
mod view;

pub use algorithm::Algorithm;
pub use builtin::{builtin, builtin_toml, kinds};
pub use docs::{providers_table, secret_shape};
pub use encoding::{Compare, Decoding, Encoding};
pub use explain::{CandidateInfo, Explanation, PieceInfo, Place, SignedText, StampInfo, explain};
pub use extract::{Extracted, dedupe_key, extract};
pub use handshake::{FollowUp, Handshake, HandshakeAnswer, HandshakeRule, handshake};
pub use json::{JsonPath, JsonPathError};
pub use location::{JoinRule, Location, LocationError, Part, ValueRule};
pub use reason::{Reason, Rejection};
pub use request::{Candidate, Headers, Request};
pub use sample::{Sample, sample};
pub use scheme::{
    BasicRule, Confidence, DEFAULT_TOLERANCE_S, Derive, EventRule, Facts, Format, HashClaim,
    JwtRule, Labels, Limit, MAX_SIGNATURES, NoLimit, Normalise, NumberForm, RequireRule, Scheme,
    SecretEncoding, SecretRule, SignatureRule, Signs, Step, TimestampRule, TokenRule, Unit,
};
pub use secret::{Secret, SecretError, import_secret};
pub use sign::{SignError, SignInput, Signed, sign};
pub use step::certificate::certificate_url;
pub use template::{Template, TemplateError};
pub use validate::{Problem, SchemeError};
pub use verify::{Verified, verify};

/// A point in time, with the offset it was written in.
pub type Timestamp = time::OffsetDateTime;
