//! When a delivery is tried again, and when it is given up.
//!
//! A policy is data: it stands on the subscription as JSON, and a copy of it on
//! each delivery, which nothing changes. What is accepted here is what the
//! database accepts (`hookstead.is_retry_policy`).

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::Jitter;

/// Most waits of a schedule. With one attempt before the first wait this bounds
/// the attempts of a round.
pub const MAX_RETRIES: usize = 50;

/// Longest wait of a schedule, in seconds: 30 days.
pub const MAX_WAIT_S: u64 = 2_592_000;

/// Longest time for one attempt, in milliseconds: a Lambda function lives 15 minutes.
pub const MAX_TIMEOUT_MS: u64 = 900_000;

/// Greatest age, in seconds: a year.
pub const MAX_AGE_S: u64 = 31_536_000;

/// Most equal refusals in a row that can be asked for: as many as attempts.
pub const MAX_GIVE_UP_AFTER: u64 = 51;

/// Waits of the default policy, in seconds: over three days in all.
const DEFAULT_SCHEDULE_S: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// A parsed and validated retry policy.
///
/// The first attempt is made at once, so a schedule of n waits allows n + 1.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct RetryPolicy {
    schedule_ms: Vec<u64>,
    jitter: f64,
    timeout_ms: u64,
    max_age_ms: u64,
    give_up_after_identical: Option<u32>,
}

/// The first rule that a policy breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRetryPolicy {
    /// More waits than [`MAX_RETRIES`].
    #[error("schedule_s has at most 50 waits")]
    TooManyWaits,
    /// A negative wait, or one beyond [`MAX_WAIT_S`].
    #[error("each of schedule_s is from 0 to 2592000 seconds")]
    Wait,
    /// A share outside 0 to 1.
    #[error("jitter is from 0 to 1")]
    Jitter,
    /// A timeout outside 1 to [`MAX_TIMEOUT_MS`].
    #[error("timeout_ms is from 1 to 900000")]
    Timeout,
    /// An age outside 1 to [`MAX_AGE_S`].
    #[error("max_age_s is from 1 to 31536000 seconds")]
    MaxAge,
    /// A count outside 1 to [`MAX_GIVE_UP_AFTER`].
    #[error("give_up_after_identical is null or from 1 to 51")]
    GiveUpAfterIdentical,
}

impl RetryPolicy {
    /// The waits after the first, second, … failure, before jitter.
    pub fn schedule(&self) -> impl ExactSizeIterator<Item = Duration> {
        self.schedule_ms.iter().copied().map(Duration::from_millis)
    }

    /// The share by which a wait varies, 0 to 1.
    #[must_use]
    pub const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// The time for one attempt, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// The age of a round at which trying ends.
    #[must_use]
    pub const fn max_age(&self) -> Duration {
        Duration::from_millis(self.max_age_ms)
    }

    /// How many equal refusals in a row end a delivery; `None`: they never do.
    #[must_use]
    pub const fn give_up_after_identical(&self) -> Option<u32> {
        self.give_up_after_identical
    }

    /// The attempts that a new round may use: one, and one after each wait.
    #[must_use]
    pub fn attempt_budget(&self) -> u32 {
        // At most MAX_RETRIES waits.
        1 + u32::try_from(self.schedule_ms.len()).unwrap_or(u32::MAX - 1)
    }

    /// The wait after `failures` attempts of a round have failed, the last of them
    /// just now. `None`: there was none, or none is left.
    #[must_use]
    pub fn wait(&self, failures: u32, jitter: Jitter) -> Option<Duration> {
        let place = usize::try_from(failures.checked_sub(1)?).ok()?;
        let wait_ms = *self.schedule_ms.get(place)?;
        Some(jitter.vary(Duration::from_millis(wait_ms), self.jitter))
    }

    /// Whether this many equal refusals in a row are enough to give up.
    #[must_use]
    pub fn gives_up_after(&self, identical: u32) -> bool {
        self.give_up_after_identical
            .is_some_and(|limit| identical >= limit)
    }
}

impl Default for RetryPolicy {
    /// The policy of a subscription that names none. It never changes:
    /// deliveries refer to it by having no policy of their own.
    fn default() -> Self {
        Self {
            schedule_ms: DEFAULT_SCHEDULE_S.iter().map(|wait| wait * 1000).collect(),
            jitter: 0.2,
            timeout_ms: 15_000,
            max_age_ms: 432_000_000,
            give_up_after_identical: Some(5),
        }
    }
}

/// A policy as it is written: numbers that may have fractions, as in the database.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    schedule_s: Vec<Number>,
    jitter: Number,
    timeout_ms: Number,
    max_age_s: Number,
    /// `null` has to be written: a forgotten key is an error, not a choice.
    #[serde(deserialize_with = "present")]
    give_up_after_identical: Option<Number>,
}

/// Whole numbers are written without a fraction, so that they read as they were given.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Fraction(f64),
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Number>, D::Error> {
    Option::deserialize(deserializer)
}

impl Number {
    /// In thousandths of `unit`: `thousandths(1500)` of seconds is one and a half.
    fn of_thousandths(thousandths: u64) -> Self {
        if thousandths.is_multiple_of(1000) {
            Self::Whole(thousandths / 1000)
        } else {
            Self::Fraction(thousandths as f64 / 1000.0)
        }
    }

    fn value(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Fraction(number) => number,
        }
    }

    /// Times `factor`, to the nearest whole number, where the number itself is within
    /// the limits. All limits are far below 2^52, so the casts are exact.
    fn within(self, min: u64, max: u64, factor: u64) -> Option<u64> {
        let value = self.value();
        let fits = value >= min as f64 && value <= max as f64;
        fits.then(|| (value * factor as f64).round() as u64)
    }
}

impl TryFrom<Written> for RetryPolicy {
    type Error = InvalidRetryPolicy;

    fn try_from(written: Written) -> Result<Self, InvalidRetryPolicy> {
        use InvalidRetryPolicy as Invalid;
        if written.schedule_s.len() > MAX_RETRIES {
            return Err(Invalid::TooManyWaits);
        }
        let waits = written.schedule_s.iter();
        let schedule_ms: Option<_> = waits.map(|wait| wait.within(0, MAX_WAIT_S, 1000)).collect();
        let jitter = written.jitter.value();
        if !(0.0..=1.0).contains(&jitter) {
            return Err(Invalid::Jitter);
        }
        let identical = written.give_up_after_identical.map(|count| {
            let count = count.within(1, MAX_GIVE_UP_AFTER, 1);
            let count = count.and_then(|count| u32::try_from(count).ok());
            count.ok_or(Invalid::GiveUpAfterIdentical)
        });
        Ok(Self {
            schedule_ms: schedule_ms.ok_or(Invalid::Wait)?,
            jitter,
            timeout_ms: written
                .timeout_ms
                .within(1, MAX_TIMEOUT_MS, 1)
                .ok_or(Invalid::Timeout)?,
            max_age_ms: written
                .max_age_s
                .within(1, MAX_AGE_S, 1000)
                .ok_or(Invalid::MaxAge)?,
            give_up_after_identical: identical.transpose()?,
        })
    }
}

impl From<RetryPolicy> for Written {
    fn from(policy: RetryPolicy) -> Self {
        let waits = policy.schedule_ms.into_iter();
        let identical = policy.give_up_after_identical.map(u64::from);
        Self {
            schedule_s: waits.map(Number::of_thousandths).collect(),
            jitter: Number::Fraction(policy.jitter),
            timeout_ms: Number::Whole(policy.timeout_ms),
            max_age_s: Number::of_thousandths(policy.max_age_ms),
            give_up_after_identical: identical.map(Number::Whole),
        }
    }
}
