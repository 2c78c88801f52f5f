//! Claiming, extending, cancelling and re-arming.

use super::{Delivery, State};
use crate::{CancelReason, Lease, LeaseId, RetryPolicy, Timestamp};

/// What a worker asks for on the word of a queue message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The round that the message is about.
    pub round: u32,
    /// The number that the attempt would have.
    pub attempt: u32,
    /// The lease that it would run under.
    pub lease: Lease,
}

/// Why a claim gets nothing. None of these is a fault: messages may be stale or
/// repeated, and then do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefused {
    /// The message is about another round.
    #[error("the delivery is in another round")]
    OtherRound,
    /// The round is over.
    #[error("the delivery is over")]
    Over,
    /// Somebody attempts it at the moment.
    #[error("the delivery is leased")]
    Leased,
    /// The message is about another attempt.
    #[error("another attempt is next")]
    OtherAttempt,
    /// No attempt is left. A delivery in this state breaks the rules; it is not attempted.
    #[error("no attempt is left")]
    BudgetSpent,
}

/// The lease is not the one that the delivery is under: somebody else has finished
/// it or attempts it now. To be logged; nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease was lost")]
pub struct LeaseLost;

/// Why a delivery is not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelRefused {
    /// An attempt is under way and may finish; if it does not end the delivery,
    /// the delivery can be cancelled then.
    #[error("an attempt is under way")]
    Leased,
    /// It is over already.
    #[error("the delivery is over")]
    Over,
}

/// Only a delivery that is over can be re-armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delivery is not over yet")]
pub struct NotOver;

impl Delivery {
    /// Takes a pending delivery for one attempt, and counts the attempt: a delivery
    /// that kills its worker uses up its budget all the same.
    ///
    /// # Errors
    ///
    /// When the delivery is not pending with exactly this attempt of this round next.
    pub fn claim(&self, claim: &Claim) -> Result<Self, ClaimRefused> {
        if claim.round != self.round {
            return Err(ClaimRefused::OtherRound);
        }
        match self.state {
            State::Pending { .. } => {}
            State::Leased(_) => return Err(ClaimRefused::Leased),
            _ => return Err(ClaimRefused::Over),
        }
        if self.attempt_count >= self.attempt_budget {
            return Err(ClaimRefused::BudgetSpent);
        }
        let attempt_count = self.attempt_count + 1;
        if claim.attempt != attempt_count {
            return Err(ClaimRefused::OtherAttempt);
        }
        Ok(Self {
            attempt_count,
            state: State::Leased(claim.lease),
            ..self.clone()
        })
    }

    /// Keeps a lease until `expires_at`, for an attempt that takes long. Never
    /// shortens it.
    ///
    /// # Errors
    ///
    /// When the delivery is not under this lease.
    pub fn extend(&self, lease_id: LeaseId, expires_at: Timestamp) -> Result<Self, LeaseLost> {
        let lease = self.lease(lease_id)?;
        let expires_at = expires_at.max(lease.expires_at);
        Ok(self.with(State::Leased(Lease {
            lease_id,
            expires_at,
        })))
    }

    /// Ends a pending delivery that nobody wants any more.
    ///
    /// # Errors
    ///
    /// When it is not pending.
    pub fn cancel(&self, reason: CancelReason) -> Result<Self, CancelRefused> {
        match self.state {
            State::Pending { .. } => Ok(self.with(State::Cancelled(reason))),
            State::Leased(_) => Err(CancelRefused::Leased),
            _ => Err(CancelRefused::Over),
        }
    }

    /// Begins the next round of a delivery that is over, under the policy of now.
    ///
    /// # Errors
    ///
    /// When it is not over.
    pub fn rearm(&self, policy: &RetryPolicy, now: Timestamp) -> Result<Self, NotOver> {
        if self.is_over() {
            Ok(Self::begin(self.round.saturating_add(1), policy, now))
        } else {
            Err(NotOver)
        }
    }

    /// The lease, if it is this one.
    pub(super) fn lease(&self, lease_id: LeaseId) -> Result<Lease, LeaseLost> {
        match self.state {
            State::Leased(lease) if lease.lease_id == lease_id => Ok(lease),
            _ => Err(LeaseLost),
        }
    }

    pub(super) fn with(&self, state: State) -> Self {
        Self {
            state,
            ..self.clone()
        }
    }
}
