//! How much there is to do.

use std::time::Duration;

use sqlx::PgConnection;

use super::due::seconds;
use super::{count, operation};
use crate::error::StoreError;

/// Where counting stops: beyond it the number says nothing more, and counting it
/// would cost more than a few milliseconds.
pub const MAX_COUNT: u32 = 100_000;

/// What waits, for metrics and for deciding how long to sleep. Counts stop at
/// [`MAX_COUNT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// For how long the most overdue delivery has been due: what an alarm watches.
    /// Subscriptions that are paused or disabled do not count, nor does an attempt
    /// under way. Of deliveries in the queue the one that is longest in it stands for
    /// its subscription. `None`: nothing waits, or nothing is due yet.
    pub overdue: Option<Duration>,
    /// Age of the oldest delivery that is not finished, retries included: of that of
    /// the earliest event, since when its round runs.
    pub oldest_undelivered: Option<Duration>,
    /// Deliveries that wait for their time.
    pub waiting: u64,
    /// Deliveries that are in the queue.
    pub scheduled: u64,
    /// Deliveries that are being attempted.
    pub leased: u64,
    /// Announced events that are not expanded yet.
    pub outbox: u64,
    /// For how long the first of them has been announced.
    pub oldest_outbox: Option<Duration>,
    /// Those among them that failed and are tried again later: see docs/outbox.md.
    pub outbox_failed: u64,
    /// Reports that the control plane has not acknowledged.
    pub reports: u64,
    /// Dead letters that are not announced yet.
    pub notices: u64,
}

impl Backlog {
    /// Deliveries that are not being attempted and not finished.
    #[must_use]
    pub const fn pending(&self) -> u64 {
        self.waiting + self.scheduled
    }
}

/// Reads the [`Backlog`].
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn backlog(connection: &mut PgConnection) -> Result<Backlog, StoreError> {
    let row = sqlx::query_file!("queries/backlog.sql", i64::from(MAX_COUNT))
        .fetch_one(connection)
        .await?;
    Ok(Backlog {
        overdue: row.overdue_s.filter(|s| *s >= 0.0).map(seconds),
        oldest_undelivered: row.oldest_undelivered_s.map(seconds),
        waiting: count(row.waiting),
        scheduled: count(row.scheduled),
        leased: count(row.leased),
        outbox: count(row.outbox_rows),
        oldest_outbox: row.oldest_outbox_s.map(seconds),
        outbox_failed: count(row.outbox_failed),
        reports: count(row.reports),
        notices: count(row.notices),
    })
}

/// [`backlog`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ReadBacklog;

operation!(ReadBacklog => Backlog, |_this, connection| backlog(connection));
