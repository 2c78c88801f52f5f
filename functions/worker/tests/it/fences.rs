//! Leases: late workers, and workers that die.

use std::process::Stdio;
use std::sync::Arc;

use hookstead_testkit::LogCapture;
use hookstead_worker::handler::{Event, Handler, HandlerError, Handlers, Verdict};
use serde_json::json;
use sqlx::PgConnection;
use tokio::process::Command;
use tokio::sync::Semaphore;

use crate::world::{Consumer, Reply, World, connections, message, worker_over};

#[tokio::test]
async fn out_04_a_late_worker_cannot_overwrite() {
    let world = World::new().await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let consumer = Consumer::start(move |_, number| {
        let opened = Arc::clone(&opened);
        Box::pin(async move {
            if number > 1 {
                return Reply::status(200);
            }
            drop(opened.acquire().await);
            Reply::status(500)
        })
    })
    .await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let logs = LogCapture::start();
    let late = world.worker();
    let messages = world.messages().await;
    let stalled = tokio::spawn(async move { late.process(messages).await });
    consumer.wait_for(1).await;
    world.expire_leases().await;
    world.reap().await;
    world.work(&world.worker()).await;
    assert_eq!(world.only().await.state, "succeeded");
    gate.add_permits(1);
    // Its message is done with: there is nothing left for it to do.
    assert_eq!(stalled.await.unwrap().failures, Vec::<String>::new());
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 2));
    let attempts = world.attempts(row.delivery_id).await;
    let outcomes: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.outcome.as_str(), attempt.error_class.as_deref()))
        .collect();
    assert_eq!(
        outcomes,
        [("retry", Some("worker_lost")), ("success", None)]
    );
    assert!(logs.contains("its lease was lost"));
    assert!(logs.contains(&row.delivery_id.to_string()));
}

/// Takes every event but those that say `abort`.
struct Aborts;

impl Handler for Aborts {
    type Prepared = ();

    async fn prepare(&self, event: &Event) -> Result<(), HandlerError> {
        if event.event.raw_body == b"abort" {
            std::process::abort();
        }
        Ok(())
    }

    async fn handle(
        &self,
        _: &Event,
        (): &(),
        _: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        Ok(Verdict::Done)
    }
}

fn aborting() -> Handlers {
    Handlers::new().register("aborts", Aborts).unwrap()
}

const CHILD_URL: &str = "HOOKSTEAD_ABORTING_CHILD_DATABASE";
const CHILD_MESSAGES: &str = "HOOKSTEAD_ABORTING_CHILD_MESSAGES";

/// The process that dies: only a test, below, runs it, with what it needs.
#[tokio::test]
#[ignore = "the child process of another test"]
async fn a_worker_that_aborts() {
    let url = std::env::var(CHILD_URL).unwrap();
    let messages: Vec<(uuid::Uuid, i32)> =
        serde_json::from_str(&std::env::var(CHILD_MESSAGES).unwrap()).unwrap();
    let messages = messages
        .into_iter()
        .map(|(id, attempt)| message(id, 1, attempt));
    let connections = connections(&url, 2);
    let worker = worker_over(connections.clone(), connections, aborting(), |_| {});
    worker.process(messages.collect()).await;
}

/// Lets a process of its own work these off; it dies.
async fn die_over(world: &World, messages: &[(uuid::Uuid, i32)]) {
    let url = world.database.url_as(hookstead_testkit::role::WORKER);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fences::a_worker_that_aborts", "--ignored"])
        .env(CHILD_URL, url)
        .env(CHILD_MESSAGES, serde_json::to_string(messages).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await
        .unwrap();
    assert!(!status.success(), "the child lives");
}

#[tokio::test]
async fn wrk_08_a_job_that_kills_its_worker_runs_out_of_attempts() {
    let world = World::new().await;
    let policy = json!({"jitter": 0, "schedule_s": [0, 0, 0, 0, 0, 0, 0]});
    let subscription = world
        .subscribe("x", json!({"kind": "handler", "name": "aborts"}), policy)
        .await;
    for _ in 0..3 {
        world.event(b"fine").await;
    }
    let killer = World::delivery(world.event(b"abort").await, subscription).as_uuid();
    // All four in one batch: the worker dies over it.
    let all: Vec<_> = world
        .live()
        .await
        .iter()
        .map(|row| (row.delivery_id, 1))
        .collect();
    die_over(&world, &all).await;
    world.expire_leases().await;
    world.reap().await;
    // Its neighbours come in another batch, and finish.
    let others = world
        .live()
        .await
        .into_iter()
        .filter(|row| row.delivery_id != killer);
    let others = others
        .map(|row| message(row.delivery_id, 1, row.attempt_count + 1))
        .collect();
    world.worker_with(aborting(), |_| {}).process(others).await;
    assert_eq!(world.ended("succeeded").await, 3);
    for attempt in 2..=5 {
        assert_eq!(
            world.only_live().await.attempt_count,
            attempt - 1,
            "counted at the claim"
        );
        die_over(&world, &[(killer, attempt)]).await;
        world.expire_leases().await;
        world.reap().await;
    }
    assert_eq!(world.live().await.len(), 0);
    let done = world.done().await;
    let dead = done.iter().find(|row| row.delivery_id == killer).unwrap();
    assert_eq!(
        (dead.state.as_str(), dead.attempt_count),
        ("dead_letter", 5)
    );
    assert_eq!(dead.state_reason.as_deref(), Some("worker_lost"));
}
