//! The handler kit's defences against disorder.

use hookstead_worker::handler::{
    EntityLock, Event, Fetched, Handler, HandlerError, Handlers, Reconcile, Reconciling, Verdict,
    VersionGuard,
};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::world::World;

async fn world() -> World {
    let world = World::new().await;
    let destination = json!({"kind": "handler", "name": "notes"});
    world.subscribe("notes", destination, json!({})).await;
    world
}

/// Reads a counter, gives way, and writes it back: wrong without a lock.
struct Counts;

impl Handler for Counts {
    type Prepared = ();

    async fn prepare(&self, _: &Event) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn handle(
        &self,
        _: &Event,
        (): &(),
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        let lock = EntityLock {
            kind: "counter",
            id: "one",
        };
        lock.take(&mut *transaction).await?;
        let count: i64 = sqlx::query_scalar("select count from public.counter")
            .fetch_one(&mut *transaction)
            .await?;
        tokio::task::yield_now().await;
        sqlx::query("update public.counter set count = $1")
            .bind(count + 1)
            .execute(&mut *transaction)
            .await?;
        Ok(Verdict::Done)
    }
}

#[tokio::test]
async fn an_entity_lock_lets_one_handler_at_a_time_in() {
    let world = world().await;
    world
        .execute(
            "create table public.counter (count bigint not null);
             insert into public.counter values (0);
             grant all on public.counter to hookstead_worker;",
        )
        .await;
    for _ in 0..20 {
        world.event(b"{}").await;
    }
    let handlers = Handlers::new().register("notes", Counts).unwrap();
    world.work(&world.worker_with(handlers, |_| {})).await;
    assert_eq!(world.number("select count from public.counter").await, 20);
}

/// Asks another service for the state, and writes it where it is the newest.
struct Follows;

impl Reconcile for Follows {
    type State = String;

    async fn fetch(&self, event: &Event) -> Result<String, HandlerError> {
        // Stands for a call of the provider's API.
        let _: Value = event.json()?;
        Ok("as it is now".to_owned())
    }

    async fn write(
        &self,
        _: &Event,
        fetched: &Fetched<String>,
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        let written = sqlx::query(
            "insert into public.states as s (id, state, as_of) values (1, $1, $2)
             on conflict (id) do update set state = excluded.state, as_of = excluded.as_of
             where s.as_of < excluded.as_of",
        )
        .bind(&fetched.state)
        .bind(fetched.as_of)
        .execute(transaction)
        .await?;
        Ok(VersionGuard::judge(&written))
    }
}

#[tokio::test]
async fn a_reconciling_handler_writes_what_it_fetched_and_skips_what_is_older() {
    let world = world().await;
    world
        .execute(
            "create table public.states (id int primary key, state text not null, as_of timestamptz not null);
             grant all on public.states to hookstead_worker;",
        )
        .await;
    let handlers = Handlers::new()
        .register("notes", Reconciling(Follows))
        .unwrap();
    let worker = world.worker_with(handlers, |_| {});
    world.event(b"{}").await;
    world.work(&worker).await;
    assert_eq!(
        world
            .number("select count(*) from public.states where state = 'as it is now'")
            .await,
        1
    );
    world
        .execute("update public.states set as_of = now() + interval '1 hour'")
        .await;
    world.event(b"{}").await;
    world.work(&worker).await;
    let done = world.done().await;
    let skipped = done.iter().find(|row| row.state == "skipped").unwrap();
    assert_eq!(skipped.state_reason.as_deref(), Some("stale"));
}
