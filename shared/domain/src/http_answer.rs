//! What the answer of a destination means.

use crate::{ErrorClass, Outcome, ReasonCode, Timestamp, retry_after};

/// The header by which a destination refines its 2xx: `skipped` or `deferred`.
pub const OUTCOME_HEADER: &str = "hookstead-outcome";

/// The statuses that HTTP knows; what lies outside is no answer.
pub const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

/// The parts of an answer that decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpAnswer<'a> {
    /// The status as it stood on the wire.
    pub status: u16,
    /// The values of [`OUTCOME_HEADER`].
    pub outcome: &'a [&'a str],
    /// The values of [`RETRY_AFTER`](crate::RETRY_AFTER).
    pub retry_after: &'a [&'a str],
}

impl HttpAnswer<'_> {
    /// What came of the attempt; `now` is when the answer came.
    ///
    /// A 2xx is a success unless all its outcome headers say `skipped` or all say
    /// `deferred`: an unknown word must not turn a success into anything else.
    #[must_use]
    pub fn outcome(&self, now: Timestamp) -> Outcome {
        let wait = || retry_after(self.retry_after.iter().copied(), now);
        match failure(self.status) {
            Some(error) => Outcome::failed(error, wait()),
            None if self.all_say("skipped") => Outcome::Skip {
                reason: ReasonCode::CONSUMER_SKIPPED,
            },
            None if self.all_say("deferred") => Outcome::Defer {
                reason: ReasonCode::CONSUMER_DEFERRED,
                wait: wait(),
            },
            None => Outcome::Success,
        }
    }

    /// Whether the answer ends its subscription, not only this delivery.
    #[must_use]
    pub const fn disables_subscription(&self) -> bool {
        self.status == 410
    }

    /// The status as an attempt's row can hold it.
    #[must_use]
    pub fn recorded_status(&self) -> Option<u16> {
        STATUSES.contains(&self.status).then_some(self.status)
    }

    fn all_say(&self, word: &str) -> bool {
        let mut values = self.outcome.iter();
        !self.outcome.is_empty() && values.all(|value| value.trim().eq_ignore_ascii_case(word))
    }
}

/// The failure that a status stands for; `None` for 200 to 299.
const fn failure(status: u16) -> Option<ErrorClass> {
    Some(match status {
        200..=299 => return None,
        300..=399 => ErrorClass::Redirect,
        408 => ErrorClass::RequestTimeout,
        410 => ErrorClass::Gone,
        425 => ErrorClass::TooEarly,
        429 => ErrorClass::RateLimited,
        400..=499 => ErrorClass::ClientError,
        500..=599 => ErrorClass::ServerError,
        _ => ErrorClass::InvalidResponse,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;
    use time::macros::datetime;

    const NOW: Timestamp = datetime!(2026-02-03 04:05:06 UTC);

    fn answer(status: u16) -> Outcome {
        let answer = HttpAnswer {
            status,
            ..HttpAnswer::default()
        };
        answer.outcome(NOW)
    }

    fn said(words: &[&str]) -> &'static str {
        let answer = HttpAnswer {
            status: 200,
            outcome: words,
            ..HttpAnswer::default()
        };
        answer.outcome(NOW).as_str()
    }

    #[test]
    fn out_10_every_status_has_its_class() {
        for status in [200, 201, 202, 204, 206, 299] {
            assert_eq!(answer(status), Outcome::Success, "{status}");
        }
        for (status, outcome, error) in [
            (301, "retry", ErrorClass::Redirect),
            (304, "retry", ErrorClass::Redirect),
            (400, "retry", ErrorClass::ClientError),
            (404, "retry", ErrorClass::ClientError),
            (408, "retry", ErrorClass::RequestTimeout),
            (410, "fail", ErrorClass::Gone),
            (425, "retry", ErrorClass::TooEarly),
            (429, "retry", ErrorClass::RateLimited),
            (500, "retry", ErrorClass::ServerError),
            (503, "retry", ErrorClass::ServerError),
            (100, "retry", ErrorClass::InvalidResponse),
            (101, "retry", ErrorClass::InvalidResponse),
            (999, "retry", ErrorClass::InvalidResponse),
            (0, "retry", ErrorClass::InvalidResponse),
        ] {
            assert_eq!(answer(status).as_str(), outcome, "{status}");
            assert_eq!(answer(status).error(), Some(error), "{status}");
        }
    }

    #[test]
    fn a_success_is_refined_only_by_words_that_we_know() {
        assert_eq!(said(&["skipped"]), "skip");
        assert_eq!(said(&[" Deferred "]), "defer");
        assert_eq!(said(&["skipped", "skipped"]), "skip");
        for odd in [&["skipped", "deferred"][..], &["later"], &[""], &[]] {
            assert_eq!(said(odd), "success", "{odd:?}");
        }
    }

    #[test]
    fn a_refinement_changes_no_failure() {
        let answer = HttpAnswer {
            status: 500,
            outcome: &["skipped"],
            ..HttpAnswer::default()
        };
        assert_eq!(answer.outcome(NOW).as_str(), "retry");
    }

    #[test]
    fn out_11_retry_after_counts_with_failures_and_deferrals() {
        let wait = Some(Duration::from_secs(120));
        let mut answer = HttpAnswer {
            status: 429,
            outcome: &["deferred"],
            retry_after: &["120"],
        };
        let error = ErrorClass::RateLimited;
        assert_eq!(answer.outcome(NOW), Outcome::Retry { error, wait });
        answer.status = 202;
        let reason = ReasonCode::CONSUMER_DEFERRED;
        assert_eq!(answer.outcome(NOW), Outcome::Defer { reason, wait });
    }

    proptest! {
        #[test]
        fn every_status_has_an_outcome_and_only_410_ends_the_subscription(status: u16) {
            let answer = HttpAnswer { status, ..HttpAnswer::default() };
            let outcome = answer.outcome(NOW);
            prop_assert_eq!(outcome == Outcome::Success, (200..300).contains(&status));
            prop_assert_eq!(outcome.as_str() == "fail", status == 410);
            prop_assert_eq!(answer.disables_subscription(), status == 410);
            prop_assert_eq!(answer.recorded_status().is_some(), STATUSES.contains(&status));
        }
    }
}
