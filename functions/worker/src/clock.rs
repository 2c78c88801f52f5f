//! The one clock of a batch.

use hookstead_domain::Timestamp;
use tokio::time::Instant;

/// PostgreSQL's clock, kept on here: its time at the claim, and what has passed since
/// just before the claim was sent. What the machine takes for the time of day is
/// never asked.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseClock {
    claimed_at: Timestamp,
    asked_at: Instant,
}

impl DatabaseClock {
    /// The clock that stood at `claimed_at` when this process's stood at `asked_at`.
    #[must_use]
    pub fn new(claimed_at: Timestamp, asked_at: Instant) -> Self {
        Self {
            claimed_at,
            asked_at,
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = self.asked_at.elapsed().try_into();
        self.claimed_at
            .saturating_add(passed.unwrap_or(time::Duration::MAX))
    }
}
