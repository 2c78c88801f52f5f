//! Why a destination did not take an event.

use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use hookstead_domain::ErrorClass;

use crate::Cause;
use crate::call::{CallFailure, FailureKind};

/// Why a destination did not take an event, or nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the destination did not take the event: {class}, {detail}")]
pub struct TargetFailure {
    /// The class: [`ErrorClass::TargetThrottled`], [`ErrorClass::TargetUnavailable`],
    /// [`ErrorClass::TargetRefused`] or [`ErrorClass::Timeout`].
    pub class: ErrorClass,
    /// AWS's own code for the reason, or one of ours in snake_case. Never anything of
    /// the event.
    pub detail: String,
    /// What lies below, where the call did not come to an answer. What a service says in
    /// an answer is left out: it may quote the event.
    #[source]
    pub cause: Option<Cause>,
}

impl TargetFailure {
    pub(super) fn new(class: ErrorClass, detail: &str) -> Self {
        Self {
            class,
            detail: detail.to_owned(),
            cause: None,
        }
    }

    /// What no destination of the kind takes, found before it was called.
    pub(super) fn refused(detail: &str) -> Self {
        Self::new(ErrorClass::TargetRefused, detail)
    }

    /// An answer that does not say what it should.
    pub(super) fn invalid_answer() -> Self {
        Self::new(ErrorClass::TargetUnavailable, "invalid_answer")
    }

    pub(super) fn of_kind(kind: FailureKind, detail: &str) -> Self {
        Self::new(class(kind), detail)
    }

    pub(super) fn of_call<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let CallFailure { kind, code, cause } = CallFailure::of(error);
        let answered = error.raw_response().is_some();
        Self {
            class: class(kind),
            detail: code,
            cause: cause.filter(|_| !answered),
        }
    }
}

fn class(kind: FailureKind) -> ErrorClass {
    match kind {
        FailureKind::Throttled => ErrorClass::TargetThrottled,
        FailureKind::Unavailable => ErrorClass::TargetUnavailable,
        FailureKind::TimedOut => ErrorClass::Timeout,
        FailureKind::Missing | FailureKind::Denied | FailureKind::Refused => {
            ErrorClass::TargetRefused
        }
    }
}
