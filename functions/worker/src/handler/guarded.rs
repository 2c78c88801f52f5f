//! A handler's transaction.

use std::time::Duration;

use hookstead_domain::Outcome;
use hookstead_store::delivering::{Finish, FinishAnswer, finish};
use hookstead_store::{Operation, StoreError};
use sqlx::{Connection as _, PgConnection};
use tokio::time::timeout;

use super::erased::{ErasedHandler, Prepared};
use super::{Event, Verdict};
use crate::destination::Answered;
use crate::ledger::Ledger;
use crate::panics::caught;

/// The handler's writes and the end of its delivery, in one transaction.
pub(super) struct Guarded<'a> {
    pub(super) handler: &'a dyn ErasedHandler,
    pub(super) event: &'a Event,
    pub(super) prepared: &'a Prepared,
    pub(super) ledger: &'a Ledger,
    /// How long the transaction may take, once it has a connection.
    pub(super) limit: Duration,
    pub(super) worker_id: &'a str,
    pub(super) region: Option<&'a str>,
}

/// How it ended.
pub(super) enum GuardedEnd {
    /// Committed.
    Recorded,
    /// Rolled back: the lease is somebody else's, or the delivery has ended.
    LeaseLost,
    /// Rolled back: the handler did not say that it is done.
    Answered(Answered),
    /// Rolled back.
    Panicked,
}

/// Safe to repeat: what a first run committed makes the second find its lease gone.
impl Operation for Guarded<'_> {
    type Output = GuardedEnd;

    /// A handler's time is its own: `limit` bounds it.
    const TAKES_ITS_TIME: bool = true;

    async fn run(&self, connection: &mut PgConnection) -> Result<GuardedEnd, StoreError> {
        // As an error: the connection is in the middle of something, and must be closed.
        let transaction = timeout(self.limit, self.transaction(connection));
        transaction.await.unwrap_or(Err(StoreError::Silent))
    }
}

impl Guarded<'_> {
    async fn transaction(&self, connection: &mut PgConnection) -> Result<GuardedEnd, StoreError> {
        let mut transaction = connection.begin().await?;
        let handling = self
            .handler
            .handle(self.event, self.prepared, &mut transaction);
        let end = match caught(handling).await {
            Ok(Ok(Verdict::Done)) => {
                if self.finish(&mut transaction).await? {
                    transaction.commit().await?;
                    return Ok(GuardedEnd::Recorded);
                }
                GuardedEnd::LeaseLost
            }
            Ok(Ok(verdict)) => {
                GuardedEnd::Answered(verdict.outcome(self.ledger.clock.now()).into())
            }
            Ok(Err(error)) => GuardedEnd::Answered(error.answered()),
            Err(_) => GuardedEnd::Panicked,
        };
        // Asked for and waited for: a connection that broke meanwhile must show it here.
        transaction.rollback().await?;
        Ok(end)
    }

    /// Whether the delivery is ended, if the transaction commits.
    async fn finish(&self, transaction: &mut PgConnection) -> Result<bool, StoreError> {
        let ended = self.ledger.clone().end(Outcome::Success.into());
        let batch = Finish {
            attempts: &[ended.finished(0)],
            worker_id: self.worker_id,
            region: self.region,
        };
        let answers = finish(transaction, &batch).await?;
        Ok(matches!(answers[..], [FinishAnswer::Finished { .. }]))
    }
}
