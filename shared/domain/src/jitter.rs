//! Chance, as an argument.

use std::time::Duration;

/// Where in its range a wait falls: −1 is the shortest, 1 the longest.
///
/// Waits vary so that deliveries that failed together are not tried together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// A place in the range. What is outside of it counts as its nearest end;
    /// what is no number as the middle.
    #[must_use]
    pub fn new(place: f64) -> Self {
        if place.is_nan() {
            Self(0.0)
        } else {
            Self(place.clamp(-1.0, 1.0))
        }
    }

    /// The place that random bits stand for: evenly spread over the range.
    #[must_use]
    pub fn from_random(bits: u64) -> Self {
        Self::new(bits as f64 / u64::MAX as f64 * 2.0 - 1.0)
    }

    /// `wait`, longer or shorter by at most `share` of it, to the millisecond.
    #[must_use]
    pub fn vary(self, wait: Duration, share: f64) -> Duration {
        // Waits are far below 2^52 ms, and casts saturate.
        let factor = 1.0 + share.clamp(0.0, 1.0) * self.0;
        Duration::from_millis((wait.as_millis() as f64 * factor).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn random_bits_reach_both_ends_and_the_middle() {
        assert_eq!(Jitter::from_random(0), Jitter::new(-1.0));
        assert_eq!(Jitter::from_random(u64::MAX), Jitter::new(1.0));
        assert_eq!(Jitter::from_random(u64::MAX / 2), Jitter::new(0.0));
        assert_eq!(Jitter::new(f64::NAN), Jitter::new(0.0));
        assert_eq!(Jitter::new(f64::INFINITY), Jitter::new(1.0));
    }

    proptest! {
        #[test]
        fn a_wait_varies_by_no_more_than_its_share(
            wait_ms in 0u64..3_000_000_000, share in 0.0f64..=1.0, bits: u64,
        ) {
            let varied = Jitter::from_random(bits).vary(Duration::from_millis(wait_ms), share);
            let (wait, varied) = (wait_ms as f64, varied.as_millis() as f64);
            prop_assert!((varied - wait).abs() <= wait * share + 0.5, "{wait} became {varied}");
        }

        #[test]
        fn more_jitter_never_makes_a_wait_shorter(
            wait_ms in 0u64..3_000_000_000, share in 0.0f64..=1.0, a: u64, b: u64,
        ) {
            let wait = Duration::from_millis(wait_ms);
            let (low, high) = (Jitter::from_random(a.min(b)), Jitter::from_random(a.max(b)));
            prop_assert!(low.vary(wait, share) <= high.vary(wait, share));
        }
    }
}
