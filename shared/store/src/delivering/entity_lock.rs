//! A lock for one entity of the customer's own.

use sqlx::PgConnection;

use crate::error::StoreError;

/// Waits for the lock of an entity, and keeps it until the transaction ends.
///
/// The lock is named by a hash of kind and id, so two entities may share one.
///
/// # Errors
///
/// Those of the server and of the connection; where no transaction is open, the lock
/// ends at once.
pub async fn lock_entity(
    transaction: &mut PgConnection,
    kind: &str,
    id: &str,
) -> Result<(), StoreError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended($1, hashtextextended($2, 0)))",
        id,
        kind,
    )
    .execute(transaction)
    .await?;
    Ok(())
}
