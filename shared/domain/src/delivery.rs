//! What an event owes a subscription, and how that ends.
//!
//! A delivery is a value: each transition takes one and gives the next, or says why
//! there is none. docs/states.md is drawn from [`TRANSITIONS`](crate::TRANSITIONS).

mod attempt;
mod drawing;
mod moves;

pub use attempt::{DEFER_WAIT_S, Finish, MIN_DEFER_WAIT_S, ReapRefused, Terms};
pub use drawing::{Move, TRANSITIONS, Transition};
pub use moves::{CancelRefused, Claim, ClaimRefused, LeaseLost, NotOver};

use crate::{CancelReason, DeadLetterReason, Lease, ReasonCode, RetryPolicy, Timestamp};

/// One round of a delivery: what its row says that decides what may become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Counts re-arms from 1.
    pub round: u32,
    /// The attempts of this round that were begun.
    pub attempt_count: u32,
    /// How many may be: those of the policy, and one more for each deferral.
    pub attempt_budget: u32,
    /// When the round began. Its age counts from here.
    pub created_at: Timestamp,
    /// Until when the consumer may defer; set by the first deferral.
    pub deferred_until_limit: Option<Timestamp>,
    /// Where it stands.
    pub state: State,
}

/// Where a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for its next attempt.
    Pending {
        /// Not before this time.
        next_attempt_at: Timestamp,
        /// Why it was deferred, if it was.
        deferred: Option<ReasonCode>,
    },
    /// A worker attempts it.
    Leased(Lease),
    /// The consumer has it.
    Succeeded,
    /// The consumer has no use for it.
    Skipped(ReasonCode),
    /// It was given up.
    DeadLetter(DeadLetterReason),
    /// Nobody wants it any more.
    Cancelled(CancelReason),
}

/// The name of a state, as the database has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateName {
    /// See [`State::Pending`].
    Pending,
    /// See [`State::Leased`].
    Leased,
    /// See [`State::Succeeded`].
    Succeeded,
    /// See [`State::Skipped`].
    Skipped,
    /// See [`State::DeadLetter`].
    DeadLetter,
    /// See [`State::Cancelled`].
    Cancelled,
}

impl Delivery {
    /// The first round of a delivery: due at once.
    #[must_use]
    pub fn new(policy: &RetryPolicy, now: Timestamp) -> Self {
        Self::begin(1, policy, now)
    }

    fn begin(round: u32, policy: &RetryPolicy, now: Timestamp) -> Self {
        Self {
            round,
            attempt_count: 0,
            attempt_budget: policy.attempt_budget(),
            created_at: now,
            deferred_until_limit: None,
            state: State::Pending {
                next_attempt_at: now,
                deferred: None,
            },
        }
    }

    /// Whether this round is over: only re-arming leads out of it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.name().is_terminal()
    }
}

impl State {
    /// The state without its data.
    #[must_use]
    pub const fn name(&self) -> StateName {
        match self {
            Self::Pending { .. } => StateName::Pending,
            Self::Leased(_) => StateName::Leased,
            Self::Succeeded => StateName::Succeeded,
            Self::Skipped(_) => StateName::Skipped,
            Self::DeadLetter(_) => StateName::DeadLetter,
            Self::Cancelled(_) => StateName::Cancelled,
        }
    }

    /// The reason that stands beside the state.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pending { deferred, .. } => deferred.as_ref().map(ReasonCode::as_str),
            Self::Leased(_) | Self::Succeeded => None,
            Self::Skipped(reason) => Some(reason.as_str()),
            Self::DeadLetter(reason) => Some(reason.as_str()),
            Self::Cancelled(reason) => Some(reason.as_str()),
        }
    }
}

impl StateName {
    /// Every state, in the order of the reference page.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Leased,
        Self::Succeeded,
        Self::Skipped,
        Self::DeadLetter,
        Self::Cancelled,
    ];

    /// The name as the database has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Succeeded => "succeeded",
            Self::Skipped => "skipped",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == code)
    }

    /// Whether a delivery in this state is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Leased)
    }

    /// What it means, for the reference page.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pending => "waits for its next attempt",
            Self::Leased => "a worker attempts it, until its lease runs out",
            Self::Succeeded => "the consumer has it",
            Self::Skipped => "the consumer has no use for it any more",
            Self::DeadLetter => "given up, with a reason; nothing happens to it by itself",
            Self::Cancelled => "its subscription was switched off before it was delivered",
        }
    }
}
