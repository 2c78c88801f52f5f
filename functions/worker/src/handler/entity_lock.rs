//! One handler at a time for one entity.

use hookstead_store::StoreError;
use hookstead_store::delivering::lock_entity;
use sqlx::PgConnection;

/// The lock of one entity: an advisory lock of PostgreSQL that ends with the handler's
/// transaction, however that ends.
///
/// Take it first, and one lock per transaction: two handlers that take two locks in
/// different orders wait for each other until the database ends one of them. Different
/// entities may share a lock by chance, and then merely wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityLock<'a> {
    /// What kind of thing, such as `subscription`.
    pub kind: &'a str,
    /// Which one of them.
    pub id: &'a str,
}

impl EntityLock<'_> {
    /// Waits for the lock and takes it until the transaction ends.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn take(self, transaction: &mut PgConnection) -> Result<(), StoreError> {
        lock_entity(transaction, self.kind, self.id).await
    }
}
