//! The public error codes of the receiver.
//!
//! A code is the only thing a refused sender is told. Codes are stable: one may
//! be added, none changes its meaning. docs/errors.md lists them.

/// Why a request was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request cannot be read: transfer encoding, body coding, or the shape
    /// of the call itself.
    MalformedRequest,
    /// A subscription handshake lacks the challenge that it must carry.
    MissingChallenge,
    /// The signature is absent, wrong, or of nobody we know.
    InvalidSignature,
    /// The signature may be right, but its time is outside the window.
    StaleSignature,
    /// A subscription handshake carries the wrong verification token.
    InvalidToken,
    /// The source does not take events of this type.
    EventTypeNotAllowed,
    /// No such source, or it is switched off.
    UnknownSource,
    /// The path is not one of ours.
    NotFound,
    /// The method is not one that this path answers.
    MethodNotAllowed,
    /// A handshake offers a secret, and the source has one already.
    SecretAlreadySet,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// The body's content coding is not supported.
    UnsupportedCoding,
    /// The event could not be stored; try again later.
    StoreUnavailable,
    /// No secret of this source can be used at the moment; try again later.
    SecretUnavailable,
    /// A fault of our own; try again later.
    Internal,
}

impl ErrorCode {
    /// Every code, for the reference page and the tests over it.
    pub const ALL: [Self; 15] = [
        Self::MalformedRequest,
        Self::MissingChallenge,
        Self::InvalidSignature,
        Self::StaleSignature,
        Self::InvalidToken,
        Self::EventTypeNotAllowed,
        Self::UnknownSource,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::SecretAlreadySet,
        Self::BodyTooLarge,
        Self::UnsupportedCoding,
        Self::StoreUnavailable,
        Self::SecretUnavailable,
        Self::Internal,
    ];

    /// The code as it stands in the answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MalformedRequest => "malformed_request",
            Self::MissingChallenge => "missing_challenge",
            Self::InvalidSignature => "invalid_signature",
            Self::StaleSignature => "stale_signature",
            Self::InvalidToken => "invalid_token",
            Self::EventTypeNotAllowed => "event_type_not_allowed",
            Self::UnknownSource => "unknown_source",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::SecretAlreadySet => "secret_already_set",
            Self::BodyTooLarge => "body_too_large",
            Self::UnsupportedCoding => "unsupported_coding",
            Self::StoreUnavailable => "store_unavailable",
            Self::SecretUnavailable => "secret_unavailable",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::MalformedRequest | Self::MissingChallenge => 400,
            Self::InvalidSignature | Self::StaleSignature => 401,
            Self::InvalidToken | Self::EventTypeNotAllowed => 403,
            Self::UnknownSource | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::SecretAlreadySet => 409,
            Self::BodyTooLarge => 413,
            Self::UnsupportedCoding => 415,
            Self::StoreUnavailable | Self::SecretUnavailable => 503,
            Self::Internal => 500,
        }
    }

    /// Whether the sender should try again: the cause is ours and may pass.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        self.status() >= 500
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_snake_case_words() {
        let mut codes: Vec<&str> = ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
        assert!(
            codes
                .iter()
                .all(|c| c.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        );
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorCode::ALL.len());
    }

    #[test]
    fn only_our_own_faults_ask_for_a_retry() {
        for code in ErrorCode::ALL {
            assert_eq!(
                code.is_retryable(),
                matches!(code.status(), 500 | 503),
                "{code:?}"
            );
        }
    }
}
