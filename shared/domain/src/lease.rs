//! The right to attempt a delivery until a time.

use std::time::Duration;

use crate::{LeaseId, Timestamp};

/// What a lease has beyond the attempt's timeout, in milliseconds: claiming,
/// reading the event, signing, and writing the outcome, each of which the
/// database bounds to a few seconds.
pub const LEASE_MARGIN_MS: u64 = 15_000;

/// Leases of one round that may run out before the delivery is given up.
///
/// A delivery that kills its worker ends here. Neighbours in its batch lose their
/// leases too, and are spread over other batches by their waits: five in one round
/// is more than an innocent one meets.
pub const MAX_LOST_LEASES: u32 = 5;

/// A lease: whoever knows its token may finish the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The fencing token: fresh and random for each claim.
    pub lease_id: LeaseId,
    /// From when on the lease may be taken away.
    pub expires_at: Timestamp,
}

impl Lease {
    /// Whether the lease may be taken away at `now`.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

/// A lease would outlast the time for which the queue hides its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a timeout of {timeout_ms} ms needs a longer visibility timeout: at most {longest_timeout_ms} ms fit"
)]
pub struct LeaseTooLong {
    /// The timeout that does not fit.
    pub timeout_ms: u64,
    /// The longest that does; 0 where not even the shortest fits.
    pub longest_timeout_ms: u64,
}

/// How long a lease for an attempt of `timeout_ms` lasts: the timeout and
/// [`LEASE_MARGIN_MS`].
///
/// # Errors
///
/// When that is not shorter than `visibility_timeout_ms`: the queue would hand out
/// the message of a delivery that is still being attempted.
pub fn lease_length(timeout_ms: u64, visibility_timeout_ms: u64) -> Result<Duration, LeaseTooLong> {
    let length_ms = timeout_ms.saturating_add(LEASE_MARGIN_MS);
    if length_ms < visibility_timeout_ms {
        return Ok(Duration::from_millis(length_ms));
    }
    Err(LeaseTooLong {
        timeout_ms,
        longest_timeout_ms: visibility_timeout_ms.saturating_sub(LEASE_MARGIN_MS + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_TIMEOUT_MS, RetryPolicy};
    use proptest::prelude::*;

    #[test]
    fn wrk_07_the_default_timeout_fits_a_visibility_of_six_times_itself() {
        let timeout_ms = RetryPolicy::default().timeout_ms();
        assert!(lease_length(timeout_ms, 6 * timeout_ms).is_ok());
        assert!(lease_length(MAX_TIMEOUT_MS, 6 * MAX_TIMEOUT_MS).is_ok());
    }

    proptest! {
        #[test]
        fn a_lease_outlasts_its_attempt_and_ends_before_the_message_is_seen_again(
            timeout_ms in 0u64..2_000_000, visibility_ms in 0u64..4_000_000,
        ) {
            match lease_length(timeout_ms, visibility_ms) {
                Ok(length) => {
                    prop_assert!(length > Duration::from_millis(timeout_ms));
                    prop_assert!(length < Duration::from_millis(visibility_ms));
                }
                Err(refused) => {
                    let longest = refused.longest_timeout_ms;
                    prop_assert!(longest < timeout_ms || longest == 0);
                    prop_assert!(longest == 0 || lease_length(longest, visibility_ms).is_ok());
                    prop_assert!(lease_length(longest + 1, visibility_ms).is_err());
                }
            }
        }

        #[test]
        fn no_timeout_overflows(timeout_ms: u64, visibility_ms: u64) {
            let length = lease_length(timeout_ms, visibility_ms);
            prop_assert!(length.is_err() || length.unwrap() < Duration::from_millis(visibility_ms));
        }
    }
}
