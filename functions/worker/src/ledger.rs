//! What is known of a claimed delivery, for writing down how its attempt ended.

use hookstead_domain::{
    Delivery, DeliveryId, FailureKey, FailureKind, Finish as End, Jitter, LeaseId, Outcome,
    ReasonCode, RetryPolicy, SubscriptionId, Terms, Timestamp, identical_in_a_row,
};
use hookstead_store::delivering::{AttemptFacts, Claimed, FinishedAttempt};
use tokio::time::Instant;

use crate::chance;
use crate::clock::DatabaseClock;
use crate::destination::Answered;

/// The part of a claim that stays behind while its attempt is made.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) delivery_id: DeliveryId,
    pub(crate) delivery: Delivery,
    pub(crate) lease_id: LeaseId,
    pub(crate) policy: RetryPolicy,
    pub(crate) subscription_id: SubscriptionId,
    pub(crate) clock: DatabaseClock,
    /// Kind and event type, where the source lets reports name them.
    subject: Option<(String, String)>,
    started_at: Timestamp,
    /// Drawn once: writing the same end again writes the same times.
    jitter: Jitter,
}

/// How an attempt ended. Written again, it is the same.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) ledger: Ledger,
    pub(crate) answered: Answered,
    ended_at: Timestamp,
}

impl Ledger {
    pub(crate) fn open(claimed: &Claimed, asked_at: Instant) -> Self {
        let clock = DatabaseClock::new(claimed.claimed_at, asked_at);
        let event = claimed.event.as_ref();
        let subject = event.filter(|event| event.report_event_type);
        Self {
            delivery_id: claimed.delivery_id,
            delivery: claimed.delivery.clone(),
            lease_id: claimed.lease_id,
            policy: claimed.policy.clone(),
            subscription_id: claimed.subscription.subscription_id,
            clock,
            subject: subject.map(|event| (event.source_kind.clone(), event.event_type.clone())),
            started_at: clock.now(),
            jitter: chance::jitter(),
        }
    }

    /// The end of the attempt, now.
    pub(crate) fn end(self, answered: Answered) -> Ended {
        let ended_at = self.clock.now();
        Ended {
            ledger: self,
            answered,
            ended_at,
        }
    }
}

impl Ended {
    /// Whether earlier attempts decide with this one: a refusal, under a policy that
    /// gives up after so many equal ones.
    pub(crate) fn counts_refusals(&self) -> bool {
        let limited = self.ledger.policy.give_up_after_identical().is_some();
        let error = self.answered.outcome.error();
        limited && error.is_some_and(|error| error.kind() == FailureKind::Refusal)
    }

    /// How many attempts in a row failed as this one did, if it failed.
    pub(crate) fn identical(&self, earlier: Vec<Option<FailureKey>>) -> u32 {
        let Some(error) = self.answered.outcome.error() else {
            return 0;
        };
        let last = FailureKey {
            error,
            status: self.answered.observed.status_code,
            response_sha256: self.answered.observed.response_sha256,
        };
        identical_in_a_row(last, earlier)
    }

    /// As it is written.
    pub(crate) fn finished(&self, identical: u32) -> FinishedAttempt {
        let ledger = &self.ledger;
        let end = End {
            lease_id: ledger.lease_id,
            outcome: &self.answered.outcome,
            identical,
        };
        let terms = Terms {
            policy: &ledger.policy,
            jitter: ledger.jitter,
            now: self.ended_at,
        };
        let next = ledger.delivery.finish(&end, &terms);
        FinishedAttempt {
            delivery_id: ledger.delivery_id,
            lease_id: ledger.lease_id,
            expired_only: false,
            next: next.expect("a claimed delivery is under the lease that it was claimed with"),
            facts: self.facts(),
            alive: alive(&self.answered.outcome),
            subject: ledger.subject.clone(),
        }
    }

    fn facts(&self) -> AttemptFacts {
        let observed = self.answered.observed.clone();
        AttemptFacts {
            started_at: self.ledger.started_at,
            ended_at: self.ended_at.max(self.ledger.started_at),
            latency_ms: observed
                .latency_ms
                .map(|ms| ms.min(i32::MAX.cast_unsigned())),
            status_code: observed.status_code,
            outcome: self.answered.outcome.as_str(),
            error_class: self.answered.outcome.error(),
            error_detail: observed.detail,
            response_sha256: observed.response_sha256,
            response_headers: observed.response_headers,
            partner_request_id: observed.partner_request_id,
        }
    }
}

/// What an outcome says about the destination: that it works, that it does not, or
/// nothing, where the reason lies with us.
fn alive(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Defer { reason, .. } if *reason == ReasonCode::WORKER_STOPPED => None,
        Outcome::Success | Outcome::Skip { .. } | Outcome::Defer { .. } => Some(true),
        Outcome::Retry { error, .. } | Outcome::Fail { error } => {
            error.counts_against_destination().then_some(false)
        }
    }
}
