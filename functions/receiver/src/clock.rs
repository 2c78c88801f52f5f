//! Where the receiver's time comes from.

use std::sync::Arc;

use time::OffsetDateTime;

/// A source of the current time: the system's, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> OffsetDateTime + Send + Sync>);

impl Clock {
    /// The clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self::from_fn(OffsetDateTime::now_utc)
    }

    /// A clock that asks `now` each time.
    pub fn from_fn(now: impl Fn() -> OffsetDateTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        (self.0)()
    }
}
