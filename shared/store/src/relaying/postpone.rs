//! Deliveries of subscriptions that are left alone for a while.

use sqlx::PgConnection;

use super::{count, operation};
use crate::error::StoreError;

/// Spread after the end of a pause, in seconds: enough that a destination which has
/// just come back does not get everything in one second, too little for anyone to
/// wait for.
pub const POSTPONE_SPREAD_S: f64 = 10.0;

/// Moves at most `limit` due deliveries of paused subscriptions to the end of the
/// pause, spread over [`POSTPONE_SPREAD_S`]. No attempt is counted. Returns how many
/// it moved.
///
/// [`dispatch_due`](super::dispatch_due) passes over paused subscriptions in any case;
/// this keeps the end of a pause from being a rush.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn postpone_paused(connection: &mut PgConnection, limit: u16) -> Result<u64, StoreError> {
    let moved = sqlx::query_file_scalar!(
        "queries/postpone_paused.sql",
        i64::from(limit),
        POSTPONE_SPREAD_S,
    )
    .fetch_one(connection)
    .await?;
    Ok(count(moved))
}

/// [`postpone_paused`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct PostponePaused {
    /// Most deliveries.
    pub limit: u16,
}

operation!(PostponePaused => u64, |this, connection| postpone_paused(connection, this.limit));
