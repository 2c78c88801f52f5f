//! The Lambda's way in: one run per invocation of the schedule.

use std::future::pending;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::relay::{GRACE, Relay};

/// Length of a run. The schedule begins one every minute; runs that overlap are fine,
/// and each ends within its minute also where it began a little late.
pub const RUN_LENGTH: Duration = Duration::from_secs(55);

/// Time of an invocation that is kept for ending: for what phases have begun, for
/// reading the backlog, and for the runtime itself.
pub const MARGIN: Duration = Duration::from_secs(2 * GRACE.as_secs() + 2);

/// Runs the relay within an invocation that ends at `deadline`, and logs what it did.
pub async fn run(relay: &Relay, deadline: SystemTime) {
    let remaining = deadline.duration_since(SystemTime::now());
    let length = run_length(remaining.unwrap_or_default());
    let report = relay.run(Instant::now() + length, pending()).await;
    report.log();
}

/// How long a run may be, with so much of the invocation left.
fn run_length(remaining: Duration) -> Duration {
    RUN_LENGTH.min(remaining.saturating_sub(MARGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_leaves_its_margin_and_is_never_longer_than_its_length() {
        let length_s = |remaining_s| run_length(Duration::from_secs(remaining_s)).as_secs();
        assert_eq!(length_s(0), 0);
        assert_eq!(length_s(MARGIN.as_secs()), 0);
        assert_eq!(length_s(60), 60 - MARGIN.as_secs());
        assert_eq!(length_s(90), RUN_LENGTH.as_secs());
    }
}
