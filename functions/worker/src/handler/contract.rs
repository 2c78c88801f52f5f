//! What a handler is.

use std::time::Duration;

use sqlx::PgConnection;

use super::{Event, HandlerError, Verdict};

/// Code that takes deliveries.
///
/// An attempt is two steps. [`prepare`](Handler::prepare) may take its time and use the
/// network; no transaction is open. [`handle`](Handler::handle) then runs inside a
/// transaction and should be short: it holds locks, and nobody else can end the delivery
/// meanwhile. Only a [`Verdict::Done`] keeps what it wrote; with every other verdict,
/// an error or a panic the transaction is rolled back.
///
/// Either step may run again for the same delivery, also after it seemed to succeed:
/// when the connection breaks at the commit, nobody knows whether it took place. What
/// was committed is never applied twice all the same, because the second run finds the
/// lease gone and is rolled back.
pub trait Handler: Send + Sync + 'static {
    /// What [`prepare`](Handler::prepare) brings along; `()` for most.
    type Prepared: Send + Sync + 'static;

    /// Fetches what is needed from elsewhere, before the transaction.
    ///
    /// # Errors
    ///
    /// Any error: the delivery is tried again on its schedule, unless it was made by
    /// [`HandlerError::fail`].
    fn prepare(
        &self,
        event: &Event,
    ) -> impl Future<Output = Result<Self::Prepared, HandlerError>> + Send;

    /// Applies the event, inside the transaction that ends the delivery. Do not commit
    /// it or roll it back; savepoints are fine.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Handler::prepare).
    fn handle(
        &self,
        event: &Event,
        prepared: &Self::Prepared,
        transaction: &mut PgConnection,
    ) -> impl Future<Output = Result<Verdict, HandlerError>> + Send;

    /// How long an attempt may take; `None`: as long as the subscription's retry policy
    /// says. While it runs its lease is kept, so this may be longer than the policy's
    /// timeout, but never longer than the worker's time for a batch.
    fn time_limit(&self) -> Option<Duration> {
        None
    }
}
