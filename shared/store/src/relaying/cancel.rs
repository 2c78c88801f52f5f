//! Deliveries of subscriptions that are switched off.

use sqlx::PgConnection;

use super::{operation, unsigned};
use crate::error::StoreError;

/// Cancels at most `limit` pending deliveries of disabled subscriptions: each goes to
/// the archive as cancelled, with the reason `subscription_disabled`, and is reported
/// while reporting is on. An attempt under way is left alone; if it does not end its
/// delivery, a later call does. Returns how many it cancelled.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn cancel_disabled(connection: &mut PgConnection, limit: u16) -> Result<u32, StoreError> {
    let cancelled = sqlx::query_scalar!(
        r#"select hookstead.cancel_disabled($1) as "cancelled!""#,
        i32::from(limit),
    )
    .fetch_one(connection)
    .await?;
    Ok(unsigned(cancelled))
}

/// [`cancel_disabled`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct CancelDisabled {
    /// Most deliveries.
    pub limit: u16,
}

operation!(CancelDisabled => u32, |this, connection| cancel_disabled(connection, this.limit));
