//! What came of an attempt.

use std::time::Duration;

use crate::{ErrorClass, ReasonCode};

/// What came of one attempt, whatever the kind of destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The consumer has it.
    Success,
    /// The consumer has no use for it any more, for example because it is stale.
    Skip {
        /// Why.
        reason: ReasonCode,
    },
    /// The consumer wants it later. Not a failure: it uses up nothing of the budget.
    Defer {
        /// Why.
        reason: ReasonCode,
        /// How long from now; `None` leaves it to us.
        wait: Option<Duration>,
    },
    /// It failed and may be tried again.
    Retry {
        /// Why.
        error: ErrorClass,
        /// How long the destination asks to be left alone.
        wait: Option<Duration>,
    },
    /// It failed and trying again cannot help.
    Fail {
        /// Why.
        error: ErrorClass,
    },
}

impl Outcome {
    /// The outcome of an attempt that failed like this, by the kind of the failure.
    #[must_use]
    pub const fn failed(error: ErrorClass, wait: Option<Duration>) -> Self {
        match error.kind() {
            crate::FailureKind::Permanent => Self::Fail { error },
            _ => Self::Retry { error, wait },
        }
    }

    /// The outcome of an attempt that a stopping worker broke off: not a failure.
    #[must_use]
    pub const fn stopped() -> Self {
        Self::Defer {
            reason: ReasonCode::WORKER_STOPPED,
            wait: Some(Duration::ZERO),
        }
    }

    /// The code, as an attempt's row has it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Skip { .. } => "skip",
            Self::Defer { .. } => "defer",
            Self::Retry { .. } => "retry",
            Self::Fail { .. } => "fail",
        }
    }

    /// Why it failed, if it did.
    #[must_use]
    pub const fn error(&self) -> Option<ErrorClass> {
        match self {
            Self::Retry { error, .. } | Self::Fail { error } => Some(*error),
            Self::Success | Self::Skip { .. } | Self::Defer { .. } => None,
        }
    }
}

/// What makes two failures of one delivery the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureKey {
    /// Why the attempt failed.
    pub error: ErrorClass,
    /// The answer's status, where there was an answer.
    pub status: Option<u16>,
    /// The SHA-256 of what was read of the answer's body.
    pub response_sha256: Option<[u8; 32]>,
}

/// How many attempts in a row failed as the last one did, itself included.
///
/// `earlier` are the attempts before it, latest first: `None` for one that did not
/// fail, which ends the row.
pub fn identical_in_a_row(
    last: FailureKey,
    earlier: impl IntoIterator<Item = Option<FailureKey>>,
) -> u32 {
    let same = earlier.into_iter().take_while(|key| *key == Some(last));
    same.fold(1, |count, _| count.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_a_delivery_only_where_trying_again_cannot_help() {
        let wait = Some(Duration::from_secs(5));
        for error in ErrorClass::ALL {
            let outcome = Outcome::failed(*error, wait);
            assert_eq!(outcome.error(), Some(*error));
            let permanent = error.kind() == crate::FailureKind::Permanent;
            assert_eq!(outcome.as_str(), if permanent { "fail" } else { "retry" });
        }
    }

    #[test]
    fn out_09_a_stopped_attempt_has_not_failed() {
        assert_eq!(Outcome::stopped().error(), None);
        assert_eq!(Outcome::stopped().as_str(), "defer");
    }

    #[test]
    fn only_equal_failures_without_a_gap_are_in_a_row() {
        let key = |status, digest: u8| FailureKey {
            error: ErrorClass::ClientError,
            status: Some(status),
            response_sha256: Some([digest; 32]),
        };
        let last = key(404, 1);
        assert_eq!(identical_in_a_row(last, []), 1);
        assert_eq!(identical_in_a_row(last, [Some(last), Some(last)]), 3);
        assert_eq!(identical_in_a_row(last, [None, Some(last)]), 1);
        assert_eq!(
            identical_in_a_row(last, [Some(last), Some(key(403, 1)), Some(last)]),
            2
        );
        assert_eq!(identical_in_a_row(last, [Some(key(404, 2)), Some(last)]), 1);
    }
}
