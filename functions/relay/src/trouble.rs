//! Failures of a phase: what they are, and how they are told once.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{QueueError, SendRefused};
use hookstead_secrets::FetchError;
use hookstead_store::StoreError;

use crate::chance;
use crate::control_plane::ShipError;
use crate::hold::doubled;
use crate::phase::Phase;

/// Wait after the first failure of a phase. A database that fails over is back within
/// seconds, and most single failures pass at once.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Longest wait after failures: whatever comes back is noticed within it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Why a step of a phase did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PhaseError {
    #[error("the database could not be used")]
    Store(#[from] StoreError),
    #[error("the queue could not be asked")]
    Queue(#[from] QueueError),
    #[error("the queue took none of the messages")]
    Refused(#[source] SendRefused),
    #[error("the secret of the control plane cannot be used")]
    Secret(#[source] Arc<FetchError>),
    #[error("the control plane did not take the reports")]
    Ship(#[from] ShipError),
    #[error("a fault of Hookstead: the code panicked")]
    Panicked,
}

impl PhaseError {
    /// A stable word for it, or the other side's own.
    fn code(&self) -> Cow<'_, str> {
        match self {
            Self::Store(StoreError::Refused(refusal)) => Cow::from(&refusal.sqlstate),
            Self::Store(StoreError::Connection(_)) => "database_unreachable".into(),
            Self::Store(StoreError::AcquireTimeout) => "database_busy".into(),
            Self::Store(StoreError::Silent) => "database_silent".into(),
            Self::Store(_) => "database_unusable".into(),
            Self::Queue(error) => Cow::from(error.code()),
            Self::Refused(error) => Cow::from(error.code()),
            Self::Secret(_) => "secret_unavailable".into(),
            Self::Ship(error) => error.code(),
            Self::Panicked => "panicked".into(),
        }
    }

    /// Whether it stays until somebody changes something.
    fn needs_operator(&self) -> bool {
        !match self {
            Self::Store(error) => error.is_transient(),
            Self::Queue(error) => error.is_transient(),
            Self::Refused(error) => error.is_transient(),
            Self::Secret(error) => error.is_transient(),
            Self::Ship(error) => error.is_transient(),
            Self::Panicked => false,
        }
    }
}

/// The messages of an error and of all that lies below it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let message = error.to_string();
        // Wrappers often repeat what they wrap.
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        below = error.source();
    }
    text
}

/// Tells each trouble of a phase once, and when it is over.
pub(crate) struct Alarm {
    phase: Phase,
    failures: u32,
    told: Option<String>,
}

impl Alarm {
    pub(crate) fn new(phase: Phase) -> Self {
        Self {
            phase,
            failures: 0,
            told: None,
        }
    }

    /// The step failed. Gives the wait before the next.
    pub(crate) fn failed(&mut self, error: &PhaseError) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let phase = self.phase.as_str();
        let code = error.code();
        if self.is_news(&code) {
            let error_text = chain(error);
            if error.needs_operator() {
                tracing::error!(
                    phase,
                    code = %code,
                    error = error_text,
                    needs_operator = true,
                    "a phase of the relay fails until somebody changes something"
                );
            } else {
                tracing::warn!(
                    phase,
                    code = %code,
                    error = error_text,
                    "a phase of the relay failed and is tried again"
                );
            }
        }
        doubled(FIRST_WAIT, LONGEST_WAIT, self.failures, chance::jitter())
    }

    /// The step did a part of its work.
    pub(crate) fn partly(&mut self, code: &str) {
        self.failures = self.failures.saturating_add(1);
        if self.is_news(code) {
            let phase = self.phase.as_str();
            tracing::warn!(
                phase,
                code,
                "the queue took only a part of the messages; the others are sent again"
            );
        }
    }

    /// The step succeeded.
    pub(crate) fn all_is_well(&mut self) {
        if self.failures > 0 {
            tracing::info!(
                phase = self.phase.as_str(),
                failures = self.failures,
                "a phase of the relay works again"
            );
        }
        self.failures = 0;
        self.told = None;
    }

    fn is_news(&mut self, code: &str) -> bool {
        let news = self.told.as_deref() != Some(code);
        self.told = Some(code.to_owned());
        news
    }
}
