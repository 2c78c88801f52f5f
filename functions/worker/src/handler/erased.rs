//! Handlers of all types as one.

use std::any::Any;
use std::pin::Pin;
use std::time::Duration;

use sqlx::PgConnection;

use super::{Event, Handler, HandlerError, Verdict};

/// What any handler's preparation brought along.
pub(super) type Prepared = Box<dyn Any + Send + Sync>;

type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, HandlerError>> + Send + 'a>>;

/// [`Handler`] without its types.
pub(super) trait ErasedHandler: Send + Sync {
    fn prepare<'a>(&'a self, event: &'a Event) -> Step<'a, Prepared>;

    fn handle<'a>(
        &'a self,
        event: &'a Event,
        prepared: &'a Prepared,
        transaction: &'a mut PgConnection,
    ) -> Step<'a, Verdict>;

    fn time_limit(&self) -> Option<Duration>;
}

impl<H: Handler> ErasedHandler for H {
    fn prepare<'a>(&'a self, event: &'a Event) -> Step<'a, Prepared> {
        Box::pin(async move {
            let prepared = Handler::prepare(self, event).await?;
            Ok(Box::new(prepared) as Prepared)
        })
    }

    fn handle<'a>(
        &'a self,
        event: &'a Event,
        prepared: &'a Prepared,
        transaction: &'a mut PgConnection,
    ) -> Step<'a, Verdict> {
        let prepared: &H::Prepared = (**prepared)
            .downcast_ref()
            .expect("a handler gets back what it prepared");
        Box::pin(Handler::handle(self, event, prepared, transaction))
    }

    fn time_limit(&self) -> Option<Duration> {
        Handler::time_limit(self)
    }
}
