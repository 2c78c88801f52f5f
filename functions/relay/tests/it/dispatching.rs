//! What is due goes into the queue, and what the queue loses goes there again.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hookstead_relay::{Queues, SHALLOW_QUEUE};
use tokio::sync::Semaphore;

use crate::queues::{Deep, Picky};
use crate::world::{failure, first, ids, requests, run, world};

const MARKED: &str = "select count(*)::text from hookstead.live_deliveries
                      where state = 'pending' and scheduled_at is not null";

#[tokio::test]
async fn wrk_02_what_was_committed_and_never_enqueued_is_dispatched() {
    let mut world = world().await;
    let owed = world.owe(1).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let mut sent = Vec::new();
    run(&relay, async { sent = requests(&queue, 1).await }).await;
    assert_eq!(sent, [first(owed[0])]);
    assert_eq!(world.claim(&sent).await.len(), 1);
}

#[tokio::test]
async fn wrk_02_a_message_that_was_dropped_is_sent_again_after_two_minutes() {
    let mut world = world().await;
    let owed = world.owe(2).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let dropped = async {
        requests(&queue, 2).await;
    };
    run(&relay, dropped).await;
    let age = |id, seconds| {
        format!(
            "update hookstead.live_deliveries set scheduled_at = now() - {seconds} * interval '1 s'
             where delivery_id = '{id}'"
        )
    };
    world.sql(&age(owed[0], 121)).await;
    world.sql(&age(owed[1], 115)).await;
    let mut again = Vec::new();
    let report = run(&relay, async { again = requests(&queue, 1).await }).await;
    assert_eq!(again, [first(owed[0])], "the other may still be on its way");
    assert_eq!((report.redispatched, report.dispatched), (1, 0));
    let overdue = report.backlog.unwrap().overdue;
    assert!(overdue.is_some(), "what is stuck shows in the metric");
}

#[tokio::test]
async fn a_message_in_a_deep_queue_waits_for_its_turn() {
    let mut world = world().await;
    world.owe(1).await;
    world
        .sql("update hookstead.live_deliveries set scheduled_at = now() - interval '14 minutes'")
        .await;
    let deep = Arc::new(Deep {
        behind: world.deliveries.clone(),
        depth: AtomicU64::new(SHALLOW_QUEUE + 1),
        asked: Semaphore::new(0),
    });
    let queues = Queues {
        deliveries: deep.clone(),
        ..world.queues()
    };
    let asked = async { deep.asked.acquire().await.unwrap().forget() };
    let report = run(&world.relay_with(queues, None), asked).await;
    assert_eq!(report.redispatched, 0);
    assert_eq!(deep.asked.available_permits(), 0, "it asked once");
    // By now it is lost, however deep the queue is.
    world
        .sql("update hookstead.live_deliveries set scheduled_at = now() - interval '16 minutes'")
        .await;
    let queues = Queues {
        deliveries: deep.clone(),
        ..world.queues()
    };
    let again = async { assert_eq!(requests(&world.deliveries, 1).await.len(), 1) };
    let report = run(&world.relay_with(queues, None), again).await;
    assert_eq!(report.redispatched, 1);
}

#[tokio::test]
async fn out_03_of_ten_messages_the_one_that_is_refused_is_sent_later() {
    let mut world = world().await;
    let owed = world.owe(10).await;
    let picky = Picky::new(&world.deliveries, owed[3]);
    let queues = Queues {
        deliveries: picky.clone(),
        ..world.queues()
    };
    let relay = world.relay_with(queues, None);
    // The second refusal comes after the mark of the first was taken back.
    let refused = async { picky.refusals.acquire_many(2).await.unwrap().forget() };
    let report = run(&relay, refused).await;
    assert_eq!((report.dispatched, report.refused), (9, 2));
    assert_eq!(world.value(MARKED).await, "9");
    let sent = requests(&world.deliveries, 9).await;
    assert!(!ids(&sent).contains(&owed[3]));

    picky.take_everything();
    let queue = world.deliveries.clone();
    let mut late = Vec::new();
    let report = run(&relay, async { late = requests(&queue, 1).await }).await;
    assert_eq!(late, [first(owed[3])]);
    assert_eq!((report.dispatched, report.refused), (1, 0));
    assert_eq!(world.value(MARKED).await, "10");
}

#[tokio::test]
async fn a_retry_is_dispatched_when_it_is_due_and_not_before() {
    let mut world = world().await;
    world.owe(2).await;
    world.attempt_all(&failure()).await;
    let owed = world.pending().await;
    let due = |id, when: &str| {
        format!(
            "update hookstead.live_deliveries set next_attempt_at = now() + interval '{when}'
             where delivery_id = '{id}'"
        )
    };
    world.sql(&due(owed[0], "1 hour")).await;
    world.sql(&due(owed[1], "300 ms")).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let mut sent = Vec::new();
    run(&relay, async { sent = requests(&queue, 1).await }).await;
    assert_eq!((sent[0].delivery_id, sent[0].attempt), (owed[1], 2));
    let sql = "select (scheduled_at >= next_attempt_at)::text from hookstead.live_deliveries
               where scheduled_at is not null";
    assert_eq!(world.value(sql).await, "true");
    assert_eq!(world.value(MARKED).await, "1");
}
