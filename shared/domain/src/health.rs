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

/// How long a subscription is left alone after `consecutive_failures`; `None`:
/// its circuit stays closed.
///
/// A pause follows every failure from [`BREAKER_THRESHOLD`] on, each twice as long
/// as the one before, until [`LONGEST_PAUSE_S`]: between two pauses only one attempt
/// at a time is made ([`is_half_open`]).
#[must_use]
pub fn pause_after(consecutive_failures: u32) -> Option<Duration> {
    let doublings = consecutive_failures.checked_sub(BREAKER_THRESHOLD)?;
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    let pause_s = FIRST_PAUSE_S.saturating_mul(factor).min(LONGEST_PAUSE_S);
    Some(Duration::from_secs(pause_s))
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

    #[test]
    fn pauses_double_from_the_tenth_failure_on() {
        assert_eq!(pause_after(9), None);
        let pauses: Vec<_> = (10..17).filter_map(pause_after).collect();
        let seconds = [30, 60, 120, 240, 480, 900, 900].map(Duration::from_secs);
        assert_eq!(pauses, seconds);
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
        fn more_failures_never_mean_a_shorter_pause(failures: u32) {
            let pause = pause_after(failures);
            prop_assert_eq!(pause.is_some(), is_half_open(failures));
            prop_assert!(pause <= pause_after(failures.saturating_add(1)));
            prop_assert!(pause.unwrap_or_default() <= Duration::from_secs(LONGEST_PAUSE_S));
        }
    }
}
