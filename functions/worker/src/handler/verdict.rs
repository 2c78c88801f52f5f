//! What a handler says about an event.

use std::error::Error;
use std::fmt;

use hookstead_domain::{ErrorClass, Outcome, ReasonCode, Timestamp};

use crate::destination::Answered;

/// What became of an event in a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is applied: what the handler wrote is kept, and the delivery has succeeded.
    Done,
    /// The event is of no use any more. Nothing that was written is kept.
    Skip(ReasonCode),
    /// Not yet: come again at that time, which is no failure. Nothing is kept.
    Defer {
        /// When.
        until: Timestamp,
        /// Why.
        reason: ReasonCode,
    },
}

/// Why a handler did not apply an event. Nothing that was written is kept.
///
/// Every error can be raised with `?`, and means that the delivery is tried again;
/// [`HandlerError::fail`] says that trying again cannot help. The error's text may quote
/// the event, so it is neither stored nor logged: what is kept is a code, the SQLSTATE
/// where the database refused, or the one given by [`HandlerError::coded`].
pub struct HandlerError {
    class: ErrorClass,
    code: String,
    source: Box<dyn Error + Send + Sync>,
}

impl HandlerError {
    /// The delivery is tried again on its schedule.
    pub fn retry(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(ErrorClass::HandlerRetry, error.into())
    }

    /// The delivery is given up: it becomes a dead letter.
    pub fn fail(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::of(ErrorClass::HandlerFailed, error.into())
    }

    /// The same with a code that people will find beside the attempt.
    #[must_use]
    pub fn coded(mut self, code: &ReasonCode) -> Self {
        code.as_str().clone_into(&mut self.code);
        self
    }

    /// The error behind it, for the handler's own tests.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync) {
        &*self.source
    }

    fn of(class: ErrorClass, source: Box<dyn Error + Send + Sync>) -> Self {
        let refusal = source.downcast_ref::<sqlx::Error>();
        let sqlstate = refusal.and_then(|error| error.as_database_error()?.code());
        let code = match sqlstate {
            Some(sqlstate) => format!("sqlstate_{sqlstate}"),
            None => class.as_str().to_owned(),
        };
        Self {
            class,
            code,
            source,
        }
    }

    pub(super) fn answered(self) -> Answered {
        Answered::failed(self.class, self.code)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("class", &self.class)
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

impl Verdict {
    /// The outcome at `now`.
    pub(super) fn outcome(self, now: Timestamp) -> Outcome {
        match self {
            Self::Done => Outcome::Success,
            Self::Skip(reason) => Outcome::Skip { reason },
            Self::Defer { until, reason } => Outcome::Defer {
                reason,
                wait: Some((until - now).try_into().unwrap_or_default()),
            },
        }
    }
}
