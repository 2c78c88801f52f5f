//! Handlers: one transaction with the end of the delivery.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hookstead_testkit::{FaultProxy, LogCapture, role};
use hookstead_worker::handler::{
    EntityLock, Event, Fetched, Handler, HandlerError, Handlers, Reconcile, Reconciling, Verdict,
};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::sync::Semaphore;

use crate::world::{Consumer, World, connections, message, worker_over};

/// Writes a row for each event, and then does as the event says.
#[derive(Clone, Default)]
struct Notes {
    /// Cut once a handler has written.
    cut: Arc<Mutex<Option<FaultProxy>>>,
    runs: Arc<AtomicU64>,
    gate: Option<Arc<Semaphore>>,
    entered: Arc<Semaphore2>,
}

/// Counts who came in, and lets the test wait for it.
struct Semaphore2(tokio::sync::watch::Sender<u64>);

impl Default for Semaphore2 {
    fn default() -> Self {
        Self(tokio::sync::watch::Sender::new(0))
    }
}

impl Semaphore2 {
    fn enter(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    async fn wait_for(&self, count: u64) {
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
        self.runs.fetch_add(1, Ordering::SeqCst);
        sqlx::query("insert into public.notes (note) values ($1)")
            .bind(prepared)
            .execute(&mut *transaction)
            .await?;
        self.entered.enter();
        if let Some(gate) = &self.gate {
            drop(gate.acquire().await);
        }
        let cut = self.cut.lock().unwrap().take();
        if let Some(proxy) = cut {
            proxy.cut();
            *self.cut.lock().unwrap() = None;
            std::mem::forget(proxy);
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

async fn world() -> World {
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

fn handlers(notes: &Notes) -> Handlers {
    Handlers::new().register("notes", notes.clone()).unwrap()
}

async fn notes_in(world: &World) -> i64 {
    world.number("select count(*) from public.notes").await
}

#[tokio::test]
async fn what_a_handler_writes_commits_with_the_end_of_its_delivery() {
    let world = world().await;
    world.event(b"{}").await;
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    assert_eq!(notes_in(&world).await, 1);
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 1));
    assert_eq!(world.attempts(row.delivery_id).await[0].outcome, "success");
    let together = "select count(*) from public.notes n
         join hookstead.done_deliveries d on d.delivery_id::text = n.note and d.xmin = n.xmin";
    assert_eq!(world.number(together).await, 1, "by one transaction");
}

#[tokio::test]
async fn every_other_verdict_keeps_nothing_of_what_was_written() {
    for (word, state, reason, class, detail) in [
        ("skip", "skipped", Some("not_mine"), None, None),
        ("defer", "pending", Some("too_early"), None, None),
        (
            "fail",
            "dead_letter",
            Some("permanent_failure"),
            Some("handler_failed"),
            Some("broken_invoice"),
        ),
        (
            "retry",
            "pending",
            None,
            Some("handler_retry"),
            Some("handler_retry"),
        ),
        (
            "panic",
            "pending",
            None,
            Some("handler_panicked"),
            Some("panic"),
        ),
        (
            "break",
            "pending",
            None,
            Some("handler_retry"),
            Some("sqlstate_23502"),
        ),
        (
            "swallow",
            "pending",
            None,
            Some("handler_retry"),
            Some("sqlstate_25P02"),
        ),
    ] {
        let world = world().await;
        let logs = LogCapture::start();
        world
            .event(json!({"do": word}).to_string().as_bytes())
            .await;
        world
            .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
            .await;
        assert_eq!(notes_in(&world).await, 0, "{word}");
        let row = world.only().await;
        assert_eq!(
            (row.state.as_str(), row.state_reason.as_deref()),
            (state, reason),
            "{word}"
        );
        assert_eq!(row.last_error_class.as_deref(), class, "{word}");
        let attempt = world.attempts(row.delivery_id).await.remove(0);
        assert_eq!(attempt.error_detail.as_deref(), detail, "{word}");
        assert!(!logs.contains("CANARY"), "{}", logs.text());
    }
}

#[tokio::test]
async fn one_handler_of_a_batch_panics_and_the_others_are_done() {
    let world = world().await;
    for word in ["done", "panic", "done", "fail", "done"] {
        world
            .event(json!({"do": word}).to_string().as_bytes())
            .await;
    }
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (3, 3)
    );
}

#[tokio::test]
async fn four_workers_and_repeated_messages_have_one_effect_each() {
    let world = world().await;
    for _ in 0..20 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let notes = Notes::default();
    let running = (0..4).map(|_| {
        let worker = world.worker_with(handlers(&notes), |_| {});
        let messages = messages.clone();
        tokio::spawn(async move {
            for batch in messages.chunks(10).chain(messages.chunks(7)) {
                assert_eq!(
                    worker.process(batch.to_vec()).await.failures,
                    Vec::<String>::new()
                );
            }
        })
    });
    futures::future::try_join_all(running).await.unwrap();
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (20, 20)
    );
}

#[tokio::test]
async fn a_handler_whose_lease_was_lost_has_no_effect() {
    let world = world().await;
    let gate = Arc::new(Semaphore::new(0));
    let notes = Notes {
        gate: Some(Arc::clone(&gate)),
        ..Notes::default()
    };
    world.event(b"{}").await;
    let logs = LogCapture::start();
    let late = world.worker_with(handlers(&notes), |_| {});
    let messages = world.messages().await;
    let stalled = tokio::spawn(async move { late.process(messages).await });
    notes.entered.wait_for(1).await;
    world.expire_leases().await;
    world.reap().await;
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    gate.add_permits(1);
    assert_eq!(stalled.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes_in(&world).await, 1);
    assert_eq!(
        world.attempts(world.only().await.delivery_id).await.len(),
        2
    );
    assert!(logs.contains("a handler's writes were rolled back"));
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_handler_costs_a_second_run_and_no_second_effect() {
    let world = world().await;
    world.event(b"{}").await;
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let through = connections(&proxy.url(), 2);
    let notes = Notes::default();
    *notes.cut.lock().unwrap() = Some(proxy);
    let worker = worker_over(world.connections(2), through, handlers(&notes), |_| {});
    world.work(&worker).await;
    assert_eq!(notes.runs.load(Ordering::SeqCst), 2);
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (1, 1)
    );
    assert_eq!(world.only().await.attempt_count, 1);
}

#[tokio::test]
async fn a_running_handler_keeps_its_lease_and_is_ended_when_that_is_lost() {
    let world = world().await;
    let gate = Arc::new(Semaphore::new(0));
    let notes = Notes {
        gate: Some(Arc::clone(&gate)),
        ..Notes::default()
    };
    world.event(b"{}").await;
    let worker = world.worker_with(handlers(&notes), |settings| {
        settings.heartbeats_per_lease = 1000;
    });
    let messages = world.messages().await;
    let running = tokio::spawn(async move { worker.process(messages).await });
    notes.entered.wait_for(1).await;
    // A lease that is about to end does not.
    world.expire_leases().await;
    let kept = "select count(*) from hookstead.live_deliveries where lease_expires_at > now() + interval '10 s'";
    crate::world::until(|| async { world.number(kept).await == 1 }).await;
    // One that is gone ends the handler, though it would wait for ever.
    world
        .execute("update hookstead.live_deliveries set lease_id = gen_random_uuid()")
        .await;
    assert_eq!(running.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes_in(&world).await, 0);
    assert_eq!(world.only().await.state, "leased");
}

#[tokio::test]
async fn a_handler_that_is_not_there_is_missing_and_nobody_s_fault() {
    let world = world().await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.last_error_class.as_deref(), Some("handler_missing"));
    let failures = "select consecutive_failures::bigint from hookstead.subscriptions";
    assert_eq!(world.number(failures).await, 0);
}

#[tokio::test]
async fn two_handlers_of_one_name_are_refused() {
    let taken = handlers(&Notes::default()).register("notes", Notes::default());
    assert_eq!(taken.unwrap_err().0, "notes");
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
struct Follows {
    url: String,
}

impl Reconcile for Follows {
    type State = String;

    async fn fetch(&self, event: &Event) -> Result<String, HandlerError> {
        // Stands for a call of the provider's API.
        let _: Value = event.json()?;
        Ok(format!("{} as it is now", self.url))
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
        Ok(hookstead_worker::handler::VersionGuard::judge(&written))
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
    let consumer = Consumer::answering(200).await;
    let follows = Follows {
        url: consumer.url("api"),
    };
    let handlers = Handlers::new()
        .register("notes", Reconciling(follows))
        .unwrap();
    let worker = world.worker_with(handlers, |_| {});
    world.event(b"{}").await;
    world.work(&worker).await;
    assert_eq!(
        world
            .number("select count(*) from public.states where state like '%as it is now'")
            .await,
        1
    );
    world
        .execute("update public.states set as_of = now() + interval '1 hour'")
        .await;
    let event = world.event(b"{}").await;
    world.work(&worker).await;
    let done = world.done().await;
    let skipped = done.iter().find(|row| row.state == "skipped").unwrap();
    assert_eq!(skipped.state_reason.as_deref(), Some("stale"));
    assert_eq!(
        message(skipped.delivery_id, 1, 1).body().len(),
        message(event.as_uuid(), 1, 1).body().len()
    );
}
