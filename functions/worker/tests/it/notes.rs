//! A handler that writes a note for each event, and a world with its table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookstead_testkit::FaultProxy;
use hookstead_worker::handler::{Event, Handler, HandlerError, Handlers, Verdict};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::sync::Semaphore;

use crate::world::World;

/// Writes a row for each event, and then does as the event says.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    /// Cut by the first run, once it has written.
    pub(crate) cut: Option<Arc<FaultProxy>>,
    pub(crate) runs: Arc<AtomicU64>,
    /// How long each run takes at the least.
    pub(crate) lasts: Duration,
    pub(crate) gate: Option<Arc<Semaphore>>,
    pub(crate) entered: Arc<Entrances>,
}

/// Counts who came in, and lets the test wait for it.
pub(crate) struct Entrances(tokio::sync::watch::Sender<u64>);

impl Default for Entrances {
    fn default() -> Self {
        Self(tokio::sync::watch::Sender::new(0))
    }
}

impl Entrances {
    fn enter(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(crate) async fn wait_for(&self, count: u64) {
        self.0
            .subscribe()
            .wait_for(|entered| *entered >= count)
            .await
            .unwrap();
    }
}

impl Handler for Notes {
    type Prepared = String;

    async fn prepare(&self, event: &Event) -> Result<String, HandlerError> {
        Ok(event.delivery_id.to_string())
    }

    async fn handle(
        &self,
        event: &Event,
        prepared: &String,
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        sqlx::query("insert into public.notes (note) values ($1)")
            .bind(prepared)
            .execute(&mut *transaction)
            .await?;
        self.entered.enter();
        // Work that takes its time, and nothing that a test waits for.
        let work = std::future::pending::<()>();
        tokio::time::timeout(self.lasts, work).await.ok();
        if let Some(gate) = &self.gate {
            drop(gate.acquire().await);
        }
        if let Some(proxy) = self.cut.as_ref().filter(|_| run == 1) {
            proxy.cut();
        }
        let body: Value = event.json()?;
        match body["do"].as_str().unwrap_or("done") {
            "skip" => Ok(Verdict::Skip("not_mine".parse()?)),
            "defer" => Ok(Verdict::Defer {
                until: event.now() + time::Duration::hours(1),
                reason: "too_early".parse()?,
            }),
            "fail" => Err(HandlerError::fail("CANARY").coded(&"broken_invoice".parse()?)),
            "retry" => Err(HandlerError::retry("CANARY")),
            "panic" => panic!("CANARY"),
            "break" => {
                sqlx::query("insert into public.notes (note) values (null)")
                    .execute(&mut *transaction)
                    .await?;
                Ok(Verdict::Done)
            }
            "swallow" => {
                let broken = sqlx::query("select 1/0").execute(&mut *transaction).await;
                assert!(broken.is_err());
                Ok(Verdict::Done)
            }
            _ => Ok(Verdict::Done),
        }
    }
}

pub(crate) async fn world() -> World {
    let world = World::new().await;
    world
        .execute(
            "create table public.notes (note text not null);
             grant all on public.notes to hookstead_worker;",
        )
        .await;
    let policy = json!({"jitter": 0, "schedule_s": [0, 0, 0]});
    world
        .subscribe("notes", json!({"kind": "handler", "name": "notes"}), policy)
        .await;
    world
}

pub(crate) fn handlers(notes: &Notes) -> Handlers {
    Handlers::new().register("notes", notes.clone()).unwrap()
}

pub(crate) async fn notes_in(world: &World) -> i64 {
    world.number("select count(*) from public.notes").await
}
