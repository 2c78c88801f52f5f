//! Writing only what is newer.

use hookstead_domain::{ReasonCode, Timestamp};
use sqlx::postgres::PgQueryResult;

use super::{Event, Verdict};

/// The reason of an event that came after a newer one.
pub const STALE: &str = "stale";

/// Compare and set, on a version that the handler keeps beside each of its rows.
///
/// The comparison is part of the handler's own statement, so that it holds whoever else
/// writes the row:
///
/// ```sql
/// insert into app.things as t (id, status, last_event_at, last_event_rank)
/// values ($1, $2, $3, $4)
/// on conflict (id) do update set
///     status = excluded.status,
///     last_event_at = excluded.last_event_at,
///     last_event_rank = excluded.last_event_rank
/// where (t.last_event_at, t.last_event_rank)
///     < (excluded.last_event_at, excluded.last_event_rank)
/// ```
///
/// and [`judge`](VersionGuard::judge) reads its result: no row means that something
/// newer was there, and the event is skipped as [`STALE`].
///
/// Providers' times are coarse, often whole seconds. The rank orders what happens within
/// one: give what must win the higher one. Events that are equal in both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionGuard {
    /// When it happened.
    pub at: Timestamp,
    /// What comes later in the life of an entity has a higher one.
    pub rank: i32,
}

impl VersionGuard {
    /// The version of an event: when it happened, and a rank among those of that moment.
    #[must_use]
    pub fn of(event: &Event, rank: i32) -> Self {
        Self {
            at: event.happened_at(),
            rank,
        }
    }

    /// The verdict on a statement that writes where its version is newer.
    #[must_use]
    pub fn judge(result: &PgQueryResult) -> Verdict {
        if result.rows_affected() == 0 {
            return Self::stale();
        }
        Verdict::Done
    }

    /// The verdict on an event that came too late.
    #[must_use]
    pub fn stale() -> Verdict {
        let reason: Result<ReasonCode, _> = STALE.parse();
        Verdict::Skip(reason.expect("the word is a reason's code"))
    }
}
