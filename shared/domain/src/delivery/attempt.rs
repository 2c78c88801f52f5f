//! What an attempt, finished or lost, makes of its delivery.

use std::time::Duration;

use super::{Delivery, LeaseLost, State};
use crate::{
    DeadLetterReason, ErrorClass, FailureKind, Jitter, LeaseId, MAX_LOST_LEASES, Outcome,
    ReasonCode, RetryPolicy, Timestamp,
};

/// Wait after a deferral that names none, in seconds.
pub const DEFER_WAIT_S: u64 = 60;

/// Shortest wait after a deferral, in seconds: with the limit in time this also
/// bounds their number.
pub const MIN_DEFER_WAIT_S: u64 = 1;

/// What the next attempt is reckoned with.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The policy that the round began with.
    pub policy: &'a RetryPolicy,
    /// Where in its range the next wait falls.
    pub jitter: Jitter,
    /// When the attempt ended.
    pub now: Timestamp,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// The lease that it ran under.
    pub lease_id: LeaseId,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// How many attempts in a row failed as this one did, itself included
    /// ([`identical_in_a_row`](crate::identical_in_a_row)). Read for refusals alone.
    pub identical: u32,
}

/// Why a lease is not taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReapRefused {
    /// There is no lease.
    #[error("the delivery is not leased")]
    NotLeased,
    /// It has not run out, or was extended meanwhile.
    #[error("the lease has not run out")]
    StillRuns,
}

impl Delivery {
    /// Ends an attempt.
    ///
    /// # Errors
    ///
    /// When the delivery is not under this lease.
    pub fn finish(&self, finish: &Finish<'_>, terms: &Terms<'_>) -> Result<Self, LeaseLost> {
        self.lease(finish.lease_id)?;
        Ok(match finish.outcome {
            Outcome::Success => self.with(State::Succeeded),
            Outcome::Skip { reason } => self.with(State::Skipped(reason.clone())),
            Outcome::Defer { reason, wait } => self.deferred(reason, *wait, terms),
            Outcome::Retry { error, wait } => {
                let refused = error.kind() == FailureKind::Refusal;
                let given_up = refused && terms.policy.gives_up_after(finish.identical);
                self.failed(*wait, given_up, terms)
            }
            Outcome::Fail { error } => self.with(State::DeadLetter(match error {
                ErrorClass::Gone => DeadLetterReason::Gone,
                _ => DeadLetterReason::PermanentFailure,
            })),
        })
    }

    /// Takes away a lease that ran out: the attempt failed as
    /// [`ErrorClass::WorkerLost`]. `lost_before` counts the earlier ones of this round.
    ///
    /// # Errors
    ///
    /// When there is no lease, or it has not run out.
    pub fn reap(&self, lost_before: u32, terms: &Terms<'_>) -> Result<Self, ReapRefused> {
        match self.state {
            State::Leased(lease) if lease.has_expired(terms.now) => {}
            State::Leased(_) => return Err(ReapRefused::StillRuns),
            _ => return Err(ReapRefused::NotLeased),
        }
        let lost = self.with(State::DeadLetter(DeadLetterReason::WorkerLost));
        if lost_before.saturating_add(1) >= MAX_LOST_LEASES {
            return Ok(lost);
        }
        let next = self.failed(None, false, terms);
        // No attempt is left, and what ended the last one is the better reason.
        let spent = State::DeadLetter(DeadLetterReason::BudgetSpent);
        Ok(if next.state == spent { lost } else { next })
    }

    /// After a failure: the next attempt, or the end.
    fn failed(&self, asked: Option<Duration>, given_up: bool, terms: &Terms<'_>) -> Self {
        let dead = |reason| self.with(State::DeadLetter(reason));
        let scheduled = terms.policy.wait(self.failures(terms.policy), terms.jitter);
        let Some(scheduled) = scheduled.filter(|_| self.attempt_count < self.attempt_budget) else {
            return dead(DeadLetterReason::BudgetSpent);
        };
        if given_up {
            return dead(DeadLetterReason::IdenticalAnswers);
        }
        let next_attempt_at = after(terms.now, scheduled.max(asked.unwrap_or_default()));
        if next_attempt_at > self.deadline(terms.policy) {
            return dead(DeadLetterReason::MaxAge);
        }
        self.with(State::Pending {
            next_attempt_at,
            deferred: None,
        })
    }

    /// After a deferral: an attempt more, later, or the end.
    fn deferred(&self, reason: &ReasonCode, asked: Option<Duration>, terms: &Terms<'_>) -> Self {
        let wait = asked.unwrap_or(Duration::from_secs(DEFER_WAIT_S));
        let wait = wait.max(Duration::from_secs(MIN_DEFER_WAIT_S));
        let next_attempt_at = after(terms.now, wait);
        let limit = self.deferred_until_limit;
        let limit = limit.unwrap_or_else(|| self.deadline(terms.policy));
        if next_attempt_at > limit {
            return self.with(State::DeadLetter(DeadLetterReason::DeferredTooLong));
        }
        Self {
            attempt_budget: self.attempt_budget.saturating_add(1),
            deferred_until_limit: Some(limit),
            ..self.with(State::Pending {
                next_attempt_at,
                deferred: Some(reason.clone()),
            })
        }
    }

    /// The attempts of this round that were not deferrals. Each deferral added one
    /// to the budget, so what exceeds the policy's is their number.
    fn failures(&self, policy: &RetryPolicy) -> u32 {
        let deferrals = self.attempt_budget.saturating_sub(policy.attempt_budget());
        self.attempt_count.saturating_sub(deferrals)
    }

    /// The latest time of an attempt.
    fn deadline(&self, policy: &RetryPolicy) -> Timestamp {
        after(self.created_at, policy.max_age())
    }
}

fn after(start: Timestamp, wait: Duration) -> Timestamp {
    start.saturating_add(wait.try_into().unwrap_or(time::Duration::MAX))
}
