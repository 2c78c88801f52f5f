//! Why a request was refused.

use thiserror::Error;

/// A refusal. Carries no secret and no body material.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Rejection {
    /// What was wrong.
    pub reason: Reason,
    /// Receiver clock minus signed time, in seconds, where the time could be read.
    pub skew_s: Option<i64>,
    /// Labels of the secret versions that were tried.
    pub labels_tried: Vec<String>,
}

/// The stable vocabulary of refusals.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// No signature, token or credentials were sent.
    #[error("the request carries no signature")]
    MissingSignature,
    /// A signature was sent, but not in the shape this scheme uses.
    #[error("the signature is not written the way this scheme writes it")]
    MalformedSignature,
    /// More signatures than any sender needs.
    #[error("the request lists too many signatures")]
    TooManySignatures,
    /// The signed time is absent.
    #[error("the request carries no timestamp")]
    MissingTimestamp,
    /// The signed time cannot be read.
    #[error("the timestamp cannot be read")]
    MalformedTimestamp,
    /// The signed time is too old.
    #[error("the request is too old")]
    Stale,
    /// The signed time is too far ahead.
    #[error("the request comes from the future")]
    Future,
    /// No listed signature fits the content under any secret.
    #[error("no signature matches")]
    Mismatch,
    /// A part of the signed content is absent.
    #[error("a signed part is missing: {0}")]
    MissingField(String),
    /// A field that must hold a fixed value holds another one.
    #[error("a field holds an unexpected value: {0}")]
    UnexpectedValue(String),
    /// The scheme does not sign empty bodies.
    #[error("the body is empty")]
    EmptyBody,
    /// The body cannot be read the way the scheme needs.
    #[error("the body cannot be read")]
    MalformedBody,
    /// A signed hash of the body or URL differs from what arrived.
    #[error("a signed hash does not fit what arrived: {0}")]
    HashMismatch(String),
    /// The request names an algorithm this scheme does not allow.
    #[error("the signature algorithm is not allowed")]
    UnsupportedAlgorithm,
    /// The certificate would have to come from a host that is not the provider's.
    #[error("the certificate URL is not one of the provider")]
    UntrustedCertificateUrl,
    /// The secret holds no certificate, so it has to be fetched first.
    #[error("the signing certificate is not at hand")]
    CertificateNeeded,
    /// No candidate holds a key this scheme can use.
    #[error("there is no usable secret")]
    NoUsableSecret,
}

impl Reason {
    /// Every code, in the order of the enum.
    pub const CODES: &'static [&'static str] = &[
        "missing_signature",
        "malformed_signature",
        "too_many_signatures",
        "missing_timestamp",
        "malformed_timestamp",
        "stale",
        "future",
        "mismatch",
        "missing_field",
        "unexpected_value",
        "empty_body",
        "malformed_body",
        "hash_mismatch",
        "unsupported_algorithm",
        "untrusted_certificate_url",
        "certificate_needed",
        "no_usable_secret",
    ];

    /// Stable snake_case code for logs, metrics and command output.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingSignature => "missing_signature",
            Self::MalformedSignature => "malformed_signature",
            Self::TooManySignatures => "too_many_signatures",
            Self::MissingTimestamp => "missing_timestamp",
            Self::MalformedTimestamp => "malformed_timestamp",
            Self::Stale => "stale",
            Self::Future => "future",
            Self::Mismatch => "mismatch",
            Self::MissingField(_) => "missing_field",
            Self::UnexpectedValue(_) => "unexpected_value",
            Self::EmptyBody => "empty_body",
            Self::MalformedBody => "malformed_body",
            Self::HashMismatch(_) => "hash_mismatch",
            Self::UnsupportedAlgorithm => "unsupported_algorithm",
            Self::UntrustedCertificateUrl => "untrusted_certificate_url",
            Self::CertificateNeeded => "certificate_needed",
            Self::NoUsableSecret => "no_usable_secret",
        }
    }

    /// Whether a newer copy of the secrets could change the verdict.
    #[must_use]
    pub fn could_be_wrong_secret(&self) -> bool {
        matches!(self, Self::Mismatch | Self::NoUsableSecret)
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn the_list_of_codes_is_complete() {
        let text = String::new;
        let all = [
            Reason::MissingSignature,
            Reason::MalformedSignature,
            Reason::TooManySignatures,
            Reason::MissingTimestamp,
            Reason::MalformedTimestamp,
            Reason::Stale,
            Reason::Future,
            Reason::Mismatch,
            Reason::MissingField(text()),
            Reason::UnexpectedValue(text()),
            Reason::EmptyBody,
            Reason::MalformedBody,
            Reason::HashMismatch(text()),
            Reason::UnsupportedAlgorithm,
            Reason::UntrustedCertificateUrl,
            Reason::CertificateNeeded,
            Reason::NoUsableSecret,
        ];
        let codes: Vec<_> = all.iter().map(Reason::code).collect();
        assert_eq!(codes, Reason::CODES);
    }
}
