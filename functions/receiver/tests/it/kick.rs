//! Asking for first attempts right after the commit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookstead_aws::queue::{
    LocalQueue, QueueFuture, ReceiveMessages as _, Received, SendMessages, SendRefused,
};
use hookstead_domain::{AttemptReason, QueueMessage};
use hookstead_testkit::{LogCapture, TestDatabase};

use crate::world::{World, github, is_duplicate, receiver, source, subscription};

/// A queue that says no, or nothing at all.
#[derive(Clone, Copy)]
enum Bad {
    Refuses,
    Hangs,
}

impl SendMessages for Bad {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        Box::pin(async move {
            if matches!(self, Self::Hangs) {
                std::future::pending::<()>().await;
            }
            let refused = SendRefused::Transient {
                code: "throttled".to_owned(),
                cause: None,
            };
            bodies.iter().map(|_| Err(refused.clone())).collect()
        })
    }
}

/// A queue that looks, from another session, for what it is told about.
#[derive(Clone)]
struct Looking {
    database: Arc<TestDatabase>,
    found: Arc<Mutex<Vec<i64>>>,
}

impl SendMessages for Looking {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        Box::pin(async move {
            let mut look = self.database.connect().await;
            let rows: i64 = sqlx::query_scalar("select count(*) from hookstead.live_deliveries")
                .fetch_one(&mut look)
                .await
                .unwrap();
            self.found.lock().unwrap().push(rows);
            bodies.iter().map(|_| Ok(())).collect()
        })
    }
}

async fn world(subscriptions: usize) -> World {
    let subscriptions = (0..subscriptions).map(|n| subscription(&format!("s{n}")));
    World::with_all(vec![source("github", "github")], subscriptions.collect()).await
}

fn url(world: &World) -> String {
    world.database.url_as(hookstead_testkit::role::RECEIVER)
}

async fn received(queue: &LocalQueue) -> Vec<Received> {
    let mut all = Vec::new();
    loop {
        let batch = queue.receive(10, Duration::ZERO).await.unwrap();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch);
    }
}

#[tokio::test]
async fn each_new_delivery_is_asked_for_once_and_a_repeat_asks_for_nothing() {
    let world = world(2).await;
    let queue = Arc::new(LocalQueue::new(Duration::from_secs(60)));
    let receiver = receiver(&url(&world), &world.secrets, &world.clock, 1).with_kick(queue.clone());
    for repeated in [false, true] {
        let answer = receiver.handle(github("d-1", b"{}")).await;
        assert_eq!((answer.status, is_duplicate(&answer)), (200, repeated));
    }
    let messages = received(&queue).await;
    let mut asked = BTreeSet::new();
    for message in &messages {
        let Ok(QueueMessage::Attempt(request)) = QueueMessage::decode(&message.body) else {
            panic!("{message:?}");
        };
        assert_eq!((request.round, request.attempt), (1, 1));
        assert_eq!(request.reason, AttemptReason::Kick);
        asked.insert(request.delivery_id.to_string());
    }
    assert_eq!((messages.len(), asked.len()), (2, 2));
    let waiting = "select count(*) from hookstead.live_deliveries
                   where next_attempt_at = created_at + interval '3 seconds'";
    assert_eq!(
        world.number(waiting).await,
        2,
        "the relay leaves them for a while"
    );
}

#[tokio::test]
async fn without_a_queue_the_deliveries_are_the_relays_at_once() {
    let world = world(1).await;
    world.send(github("d-1", b"{}")).await;
    let due = "select count(*) from hookstead.live_deliveries where next_attempt_at = created_at";
    assert_eq!(world.number(due).await, 1);
}

#[tokio::test]
async fn wrk_09_nothing_is_asked_for_before_the_commit() {
    let mut world = world(1).await;
    let url = url(&world);
    let database = Arc::new(std::mem::replace(
        &mut world.database,
        hookstead_testkit::database().await,
    ));
    let found = Arc::default();
    let looking = Looking { database, found };
    let receiver = receiver(&url, &world.secrets, &world.clock, 1).with_kick(looking.clone());
    assert_eq!(receiver.handle(github("d-1", b"{}")).await.status, 200);
    assert_eq!(*looking.found.lock().unwrap(), [1]);
}

#[tokio::test]
async fn one_event_asks_for_no_more_than_one_call_takes() {
    let world = world(12).await;
    let queue = Arc::new(LocalQueue::new(Duration::from_secs(60)));
    let receiver = receiver(&url(&world), &world.secrets, &world.clock, 1).with_kick(queue.clone());
    receiver.handle(github("d-1", b"{}")).await;
    assert_eq!(received(&queue).await.len(), 10);
    assert_eq!(
        world
            .number("select count(*) from hookstead.live_deliveries")
            .await,
        12
    );
}

#[tokio::test]
async fn wrk_02_a_queue_that_refuses_or_hangs_changes_no_answer() {
    let world = world(1).await;
    for (id, bad) in [("d-1", Bad::Refuses), ("d-2", Bad::Hangs)] {
        let logs = LogCapture::start();
        let receiver = receiver(&url(&world), &world.secrets, &world.clock, 1).with_kick(bad);
        let answer = receiver.handle(github(id, b"{}")).await;
        assert!(answer.status == 200 && !is_duplicate(&answer), "{id}");
        assert!(
            logs.text().contains("the relay asks instead"),
            "{}",
            logs.text()
        );
    }
    let due = "select count(*) from hookstead.live_deliveries where state = 'pending'";
    assert_eq!(world.number(due).await, 2);
}
