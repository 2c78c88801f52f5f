//! From the outbox into the queue.

use hookstead_relay::Phase;
use hookstead_testkit::role;
use sqlx::Connection as _;

use crate::world::{ids, requests, run, world};

#[tokio::test]
async fn an_announced_event_is_expanded_and_its_deliveries_are_dispatched() {
    let mut world = world().await;
    world.subscribe("two").await;
    world.publish(3).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let mut sent = Vec::new();
    let report = run(&relay, async { sent = requests(&queue, 6).await }).await;
    assert_eq!(ids(&sent), world.pending().await);
    assert_eq!((report.expanded, report.deliveries), (3, 6));
    assert_eq!((report.dispatched, report.refused), (6, 0));
    let backlog = report.backlog.unwrap();
    assert_eq!(
        (backlog.outbox, backlog.waiting, backlog.scheduled),
        (0, 0, 6)
    );
}

#[tokio::test]
async fn out_05_a_row_that_commits_late_is_found_like_any_other() {
    let mut world = world().await;
    let mut late = world.database.connect_as(role::PUBLISHER).await;
    let mut transaction = late.begin().await.unwrap();
    let publish = "select hookstead.publish('thing.happened', '{}', idempotency_key => 'late')";
    sqlx::query(publish)
        .execute(&mut *transaction)
        .await
        .unwrap();
    world.publish(1).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let stop = async {
        requests(&queue, 1).await;
        transaction.commit().await.unwrap();
        requests(&queue, 1).await;
    };
    let report = run(&relay, stop).await;
    assert_eq!((report.expanded, report.dispatched), (2, 2));
    let sql = "select external_event_id from hookstead.events order by event_id desc limit 1";
    assert_eq!(world.value(sql).await, "late");
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_sends_nothing() {
    let mut world = world().await;
    let mut application = world.database.connect_as(role::PUBLISHER).await;
    let mut transaction = application.begin().await.unwrap();
    let publish = "select hookstead.publish('thing.happened', '{}')";
    sqlx::query(publish)
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    world.publish(1).await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let stop = async {
        requests(&queue, 1).await;
    };
    assert_eq!(run(&relay, stop).await.expanded, 1);
}

#[tokio::test]
async fn whoever_announces_in_the_same_process_wakes_the_relay() {
    let mut world = world().await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let waker = relay.clone();
    let stop = async {
        for _ in 0..3 {
            world.publish(1).await;
            waker.wake(Phase::Expand);
            requests(&queue, 1).await;
        }
    };
    assert_eq!(run(&relay, stop).await.dispatched, 3);
}
