//! Fetching an entity as it is now.

use std::time::Duration;

use hookstead_domain::Timestamp;
use sqlx::PgConnection;

use super::{Event, Handler, HandlerError, Verdict};

/// The strongest defence against disorder: an event only says that something has
/// changed, and the state is fetched from the provider's API.
///
/// [`Reconciling`] makes a handler of it.
pub trait Reconcile: Send + Sync + 'static {
    /// The state of the entity.
    type State: Send + Sync + 'static;

    /// Asks the provider for the entity that the event is about. No transaction is open.
    ///
    /// # Errors
    ///
    /// As for [`Handler::prepare`].
    fn fetch(
        &self,
        event: &Event,
    ) -> impl Future<Output = Result<Self::State, HandlerError>> + Send;

    /// Writes the state, where no later fetch was written before: two events may be
    /// fetched in one order and written in the other. [`Fetched::as_of`] is the version
    /// to compare and set, as for [`VersionGuard`](super::VersionGuard).
    ///
    /// # Errors
    ///
    /// As for [`Handler::handle`].
    fn write(
        &self,
        event: &Event,
        fetched: &Fetched<Self::State>,
        transaction: &mut PgConnection,
    ) -> impl Future<Output = Result<Verdict, HandlerError>> + Send;

    /// As for [`Handler::time_limit`].
    fn time_limit(&self) -> Option<Duration> {
        None
    }
}

/// A state, and what it is at least as new as.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<S> {
    /// The state.
    pub state: S,
    /// A time before the fetch began, by the database's clock.
    pub as_of: Timestamp,
}

/// A handler that reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Reconciling<R>(pub R);

impl<R: Reconcile> Handler for Reconciling<R> {
    type Prepared = Fetched<R::State>;

    async fn prepare(&self, event: &Event) -> Result<Self::Prepared, HandlerError> {
        let as_of = event.now();
        let state = self.0.fetch(event).await?;
        Ok(Fetched { state, as_of })
    }

    async fn handle(
        &self,
        event: &Event,
        prepared: &Self::Prepared,
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        self.0.write(event, prepared, transaction).await
    }

    fn time_limit(&self) -> Option<Duration> {
        self.0.time_limit()
    }
}
