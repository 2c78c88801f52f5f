//! Ages of things that were read and are still in use.

use time::Duration;

use crate::Timestamp;

/// Whether `at` lies less than `limit` before `now`.
///
/// A clock that was set back makes ages negative; such a time is never recent, so
/// that nothing is trusted for longer than its limit.
#[must_use]
pub fn is_recent(at: Timestamp, limit: Duration, now: Timestamp) -> bool {
    let age = now - at;
    !age.is_negative() && age < limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_recent_up_to_its_limit_and_never_when_the_clock_went_back() {
        let at = Timestamp::UNIX_EPOCH;
        let limit = Duration::seconds(30);
        let after = |seconds| is_recent(at, limit, at + Duration::seconds(seconds));
        assert!(after(0) && after(29));
        assert!(!after(30) && !after(-1));
    }
}
