//! How long to leave the control plane alone, over the runs of a process.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hookstead_domain::Jitter;
use tokio::time::Instant;

/// First wait after the control plane did not take a batch.
const FIRST_HOLD: Duration = Duration::from_secs(1);

/// Longest wait that failures add up to: an outage that ends is noticed within it, and
/// meanwhile one request in five minutes harms nobody.
pub const LONGEST_HOLD: Duration = Duration::from_secs(300);

/// Share by which waits vary, so that relays do not come back together.
const JITTER_SHARE: f64 = 0.2;

/// `first`, doubled with each failure after the first, at most `longest`, and varied.
pub(crate) fn doubled(
    first: Duration,
    longest: Duration,
    failures: u32,
    jitter: Jitter,
) -> Duration {
    let doublings = failures.saturating_sub(1);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    let wait = first.saturating_mul(factor).min(longest);
    jitter.vary(wait, JITTER_SHARE).min(longest)
}

/// The wait of one process.
#[derive(Debug, Default)]
pub(crate) struct Hold(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    failures: u32,
    until: Option<Instant>,
}

impl Hold {
    /// How much of the wait is left; `None` where it is over.
    pub(crate) fn left(&self) -> Option<Duration> {
        let until = self.held().until?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// A batch was not taken; `asked` is what the other side asks for.
    pub(crate) fn failed(&self, asked: Option<Duration>, jitter: Jitter) {
        let mut held = self.held();
        held.failures = held.failures.saturating_add(1);
        let wait = doubled(FIRST_HOLD, LONGEST_HOLD, held.failures, jitter);
        held.until = Some(Instant::now() + wait.max(asked.unwrap_or_default()));
    }

    /// A batch was taken.
    pub(crate) fn succeeded(&self) {
        *self.held() = Held::default();
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Two plain fields: a panic elsewhere cannot leave them half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let wait = |failures| doubled(FIRST_HOLD, LONGEST_HOLD, failures, Jitter::default());
        let seconds: Vec<_> = (1..=10).map(|failures| wait(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(wait(u32::MAX), LONGEST_HOLD);
        let longest = doubled(FIRST_HOLD, LONGEST_HOLD, 40, Jitter::new(1.0));
        assert_eq!(longest, LONGEST_HOLD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_asked_for_makes_it_longer_and_never_shorter() {
        let hold = Hold::default();
        assert_eq!(hold.left(), None);
        hold.failed(Some(Duration::from_secs(90)), Jitter::default());
        assert_eq!(hold.left(), Some(Duration::from_secs(90)));
        hold.failed(Some(Duration::ZERO), Jitter::default());
        assert_eq!(hold.left(), Some(Duration::from_secs(2)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(hold.left(), None);
        hold.succeeded();
        hold.failed(None, Jitter::default());
        assert_eq!(hold.left(), Some(Duration::from_secs(1)));
    }
}
