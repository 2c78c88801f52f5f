//! What a failed call to AWS means.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::Cause;

/// A call that failed.
#[derive(Clone, Debug)]
pub(crate) struct CallFailure {
    pub(crate) kind: FailureKind,
    /// The service's code, or one of ours in snake_case.
    pub(crate) code: String,
    pub(crate) cause: Option<Cause>,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Too many calls.
    Throttled,
    /// The service could not be reached, or failed itself.
    Unavailable,
    /// No answer in time. The call may have had its effect.
    TimedOut,
    /// What is named does not exist, or is switched off.
    Missing,
    /// Not allowed.
    Denied,
    /// The service understood and refuses.
    Refused,
}

impl FailureKind {
    pub(crate) const fn is_transient(self) -> bool {
        matches!(self, Self::Throttled | Self::Unavailable | Self::TimedOut)
    }

    /// What the code of an error says. `by_service` is whether the service says, by the
    /// status or the like, that the fault is its own.
    pub(crate) fn of_code(code: &str, by_service: bool) -> Self {
        // Older services write AWS.SimpleQueueService.NonExistentQueue and the like.
        let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
        if has(&[
            "Throttl",
            "TooManyRequests",
            "LimitExceeded",
            "SlowDown",
            "OverLimit",
        ]) {
            return Self::Throttled;
        }
        // Credentials that ran out come back with the next environment of the function.
        if by_service || has(&["ExpiredToken", "RequestExpired", "Internal", "Unavailable"]) {
            return Self::Unavailable;
        }
        if has(&[
            "NotFound",
            "NonExistent",
            "DoesNotExist",
            "Disabled",
            "InvalidState",
        ]) {
            return Self::Missing;
        }
        if has(&[
            "AccessDenied",
            "NotAuthorized",
            "InvalidClientTokenId",
            "UnrecognizedClient",
            "SignatureDoesNotMatch",
            "InvalidSignature",
            "MissingAuthentication",
            "OptInRequired",
            "InvalidSecurity",
        ]) {
            return Self::Denied;
        }
        Self::Refused
    }
}

impl CallFailure {
    fn new(kind: FailureKind, code: &str, cause: Option<Cause>) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            cause,
        }
    }

    /// Reads what the SDK says of a call.
    pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let cause = Some(Cause::of(error));
        let (kind, code) = match error {
            SdkError::ConstructionFailure(_) => (FailureKind::Refused, "invalid_request"),
            SdkError::TimeoutError(_) => (FailureKind::TimedOut, "timeout"),
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                (FailureKind::TimedOut, "timeout")
            }
            SdkError::ServiceError(failure) => {
                let code = failure.err().code().unwrap_or("unknown_error");
                return match failure.raw().status().as_u16() {
                    429 => Self::new(FailureKind::Throttled, code, cause),
                    status => Self::new(FailureKind::of_code(code, status >= 500), code, cause),
                };
            }
            SdkError::ResponseError(_) => (FailureKind::Unavailable, "invalid_answer"),
            _ => (FailureKind::Unavailable, "unreachable"),
        };
        Self::new(kind, code, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_services_mean_what_they_say() {
        let expected = [
            ("ThrottlingException", FailureKind::Throttled),
            ("KMS.ThrottlingException", FailureKind::Throttled),
            ("RequestThrottled", FailureKind::Throttled),
            ("LimitExceededException", FailureKind::Throttled),
            ("InternalFailure", FailureKind::Unavailable),
            ("ServiceUnavailable", FailureKind::Unavailable),
            ("ExpiredTokenException", FailureKind::Unavailable),
            ("KeyUnavailableException", FailureKind::Unavailable),
            (
                "AWS.SimpleQueueService.NonExistentQueue",
                FailureKind::Missing,
            ),
            ("QueueDoesNotExist", FailureKind::Missing),
            ("ResourceNotFoundException", FailureKind::Missing),
            ("DisabledException", FailureKind::Missing),
            ("KMSInvalidStateException", FailureKind::Missing),
            ("AccessDeniedException", FailureKind::Denied),
            ("NotAuthorizedForSourceException", FailureKind::Denied),
            ("UnrecognizedClientException", FailureKind::Denied),
            ("InvalidParameterValue", FailureKind::Refused),
            ("InvalidCiphertextException", FailureKind::Refused),
        ];
        for (code, kind) in expected {
            assert_eq!(FailureKind::of_code(code, false), kind, "{code}");
        }
        assert_eq!(
            FailureKind::of_code("Anything", true),
            FailureKind::Unavailable
        );
    }
}
