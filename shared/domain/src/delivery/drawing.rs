//! Every transition there is.

use super::StateName::{self, Cancelled, DeadLetter, Leased, Pending, Skipped, Succeeded};

/// What makes a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// [`Delivery::claim`](crate::Delivery::claim)
    Claim,
    /// [`Delivery::finish`](crate::Delivery::finish)
    Finish,
    /// [`Delivery::reap`](crate::Delivery::reap)
    Reap,
    /// [`Delivery::cancel`](crate::Delivery::cancel)
    Cancel,
    /// [`Delivery::rearm`](crate::Delivery::rearm)
    Rearm,
}

impl Move {
    /// Its name on the reference page.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Finish => "finish",
            Self::Reap => "reap",
            Self::Cancel => "cancel",
            Self::Rearm => "re-arm",
        }
    }
}

/// One way from a state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Where it begins.
    pub from: StateName,
    /// Where it leads.
    pub to: StateName,
    /// What makes it.
    pub by: Move,
    /// When it is this one, for the reference page.
    pub when: &'static str,
}

const fn way(from: StateName, to: StateName, by: Move, when: &'static str) -> Transition {
    Transition { from, to, by, when }
}

/// When a finished delivery is tried again.
const REARMED: &str = "an operator replays, redrives or enables again: a new round";

/// Every transition. There is no other: a test draws random lives and compares.
pub const TRANSITIONS: [Transition; 12] = [
    way(
        Pending,
        Leased,
        Move::Claim,
        "a worker takes it; the attempt counts from here",
    ),
    way(Leased, Succeeded, Move::Finish, "the consumer took it"),
    way(
        Leased,
        Skipped,
        Move::Finish,
        "the consumer has no use for it",
    ),
    way(
        Leased,
        Pending,
        Move::Finish,
        "it failed and is tried again, or was deferred",
    ),
    way(
        Leased,
        DeadLetter,
        Move::Finish,
        "it failed for good, or a limit is reached",
    ),
    way(
        Leased,
        Pending,
        Move::Reap,
        "its lease ran out; it is tried again",
    ),
    way(
        Leased,
        DeadLetter,
        Move::Reap,
        "its lease ran out, and a limit is reached",
    ),
    way(
        Pending,
        Cancelled,
        Move::Cancel,
        "its subscription is disabled or deleted",
    ),
    way(Succeeded, Pending, Move::Rearm, REARMED),
    way(Skipped, Pending, Move::Rearm, REARMED),
    way(DeadLetter, Pending, Move::Rearm, REARMED),
    way(Cancelled, Pending, Move::Rearm, REARMED),
];
