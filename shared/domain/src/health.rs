//! How a subscription is treated that only fails.
//!
//! Two things depend on failures without a success between them: the circuit
//! breaker, which keeps a dead destination from eating the workers, and switching
//! the subscription off for good.

use std::time::Duration;

use crate::Timestamp;

/// Failures without a success between them after which the circuit opens. More
/// than one bad batch of ten: single events that a consumer cannot take must not
/// hold up the others.
pub const BREAKER_THRESHOLD: u32 = 10;

/// First pause, in seconds: a restart of a service is over by then.
pub const FIRST_PAUSE_S: u64 = 30;

/// Longest pause, in seconds: a destination that comes back is found within this.
pub const LONGEST_PAUSE_S: u64 = 900;

/// Time with nothing but failures after which a subscription is switched off, in
/// seconds: five days, longer than a long weekend.
pub const FAILING_TOO_LONG_S: u64 = 432_000;

/// How long a subscription is left alone after `consecutive_failures`, the first of
/// which came `failing_for` ago; `None`: its circuit stays closed.
///
/// From [`BREAKER_THRESHOLD`] on it is left alone for as long as it has failed already,
/// from [`FIRST_PAUSE_S`] to [`LONGEST_PAUSE_S`]: between two pauses only one attempt
/// at a time is made ([`is_half_open`]), so each pause is about twice the one before.
/// Time counts and not the number of failures, because forty attempts under way at once
/// fail at once, and that is one outage and not forty.
#[must_use]
pub fn pause_after(consecutive_failures: u32, failing_for: Duration) -> Option<Duration> {
    let pause_s = failing_for.as_secs().clamp(FIRST_PAUSE_S, LONGEST_PAUSE_S);
    is_half_open(consecutive_failures).then(|| Duration::from_secs(pause_s))
}

/// Whether so many failures leave the circuit half open: one attempt at a time.
#[must_use]
pub const fn is_half_open(consecutive_failures: u32) -> bool {
    consecutive_failures >= BREAKER_THRESHOLD
}

/// Whether a subscription that has only failed since `first_failure_at` is
/// switched off.
#[must_use]
pub fn fails_too_long(first_failure_at: Timestamp, now: Timestamp) -> bool {
    let limit = time::Duration::new(FAILING_TOO_LONG_S.cast_signed(), 0);
    now - first_failure_at >= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    fn pause_s(failures: u32, failing_for_s: u64) -> Option<u64> {
        pause_after(failures, Duration::from_secs(failing_for_s)).map(|pause| pause.as_secs())
    }

    #[test]
    fn pauses_double_from_the_tenth_failure_on() {
        assert_eq!(pause_s(9, 1_000_000), None);
        let mut failing_for_s = 1;
        let mut pauses = Vec::new();
        for failures in 10..17 {
            let pause = pause_s(failures, failing_for_s).unwrap();
            pauses.push(pause);
            failing_for_s += pause;
        }
        assert_eq!(pauses, [30, 31, 62, 124, 248, 496, 900]);
    }

    #[test]
    fn an_outage_that_many_attempts_meet_at_once_is_one_outage() {
        assert_eq!(pause_s(400, 2), Some(FIRST_PAUSE_S));
    }

    #[test]
    fn five_days_of_failures_are_too_long() {
        let first = datetime!(2026-02-03 04:05:06 UTC);
        assert!(!fails_too_long(
            first,
            datetime!(2026-02-08 04:05:05.999 UTC)
        ));
        assert!(fails_too_long(first, datetime!(2026-02-08 04:05:06 UTC)));
    }

    proptest! {
        #[test]
        fn failing_longer_never_means_a_shorter_pause(failures: u32, failing_for_s: u64) {
            let pause = pause_s(failures, failing_for_s);
            prop_assert_eq!(pause.is_some(), is_half_open(failures));
            prop_assert!(pause <= pause_s(failures, failing_for_s.saturating_add(1)));
            prop_assert!(pause.unwrap_or_default() <= LONGEST_PAUSE_S);
        }
    }
}
