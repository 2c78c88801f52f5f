//! The handlers of the workers: one that has an effect, and some that go wrong.

use hookstead_worker::handler::{Event, Handler, HandlerError, Handlers, Verdict};
use sqlx::PgConnection;

/// All of them, by the names that subscriptions use.
pub(super) fn all() -> Handlers {
    Handlers::new()
        .register("effect", Effect)
        .and_then(|all| all.register("retries", Wrong::Retry))
        .and_then(|all| all.register("fails", Wrong::Fail))
        .and_then(|all| all.register("panics", Wrong::Panic))
        .and_then(|all| all.register("refused", Wrong::Refused))
        .unwrap()
}

/// Writes a row for each event into a table that takes as many as come.
struct Effect;

impl Handler for Effect {
    type Prepared = ();

    async fn prepare(&self, _: &Event) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn handle(
        &self,
        event: &Event,
        (): &(),
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        sqlx::query("insert into shop.effects (event_id, attempt) values ($1, $2)")
            .bind(event.event.event_id.as_uuid())
            .bind(i64::from(event.attempt))
            .execute(transaction)
            .await?;
        Ok(Verdict::Done)
    }
}

/// Goes wrong, and says so with everything that it was given.
enum Wrong {
    Retry,
    Fail,
    Panic,
    Refused,
}

impl Handler for Wrong {
    type Prepared = ();

    async fn prepare(&self, _: &Event) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn handle(
        &self,
        event: &Event,
        (): &(),
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        let body = String::from_utf8_lossy(&event.event.raw_body).into_owned();
        match self {
            Self::Retry => Err(HandlerError::retry(body)),
            Self::Fail => Err(HandlerError::fail(body)),
            Self::Panic => panic!("{body}"),
            // The server quotes the value in what it says.
            Self::Refused => {
                sqlx::query("insert into shop.numbers (number) values ($1::text::integer)")
                    .bind(body)
                    .execute(transaction)
                    .await?;
                Ok(Verdict::Done)
            }
        }
    }
}
