//! Messages: what fails, what does not, and what they carry.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{LocalQueue, QueueDepth as _, SendMessages as _};
use hookstead_domain::{
    AttemptReason, AttemptRequest, DeadLetterNotice, DeadLetterReason, QueueMessage, SubscriptionId,
};
use hookstead_testkit::{Fault, FaultProxy, LogCapture, role};
use hookstead_worker::sqs_event::SqsAnswer;
use hookstead_worker::{QueueRecord, Worker, poller};
use serde_json::json;
use sqlx::Connection as _;
use tokio::sync::watch;

use crate::world::{Consumer, World, connections, message, record, until, worker_over};

fn ids(records: &[QueueRecord]) -> Vec<String> {
    records
        .iter()
        .map(|record| record.message_id().to_owned())
        .collect()
}

#[tokio::test]
async fn wrk_01_a_large_body_travels_by_reference() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    let subscription = world.subscribe_http("shop", &consumer).await;
    let body = vec![b'x'; 1024 * 1024];
    let event = world.event(&body).await;
    let text = QueueMessage::Attempt(AttemptRequest {
        delivery_id: World::delivery(event, subscription),
        round: 1,
        attempt: 1,
        reason: AttemptReason::Kick,
    })
    .encode();
    assert!(text.len() < 512);
    let answer = world.worker().process(vec![record(&text)]).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    assert!(consumer.requests()[0].body == body);
    assert_eq!(world.only().await.state, "succeeded");
}

#[tokio::test]
async fn wrk_02_a_lost_message_is_made_good_by_a_later_one_and_a_double_one_does_nothing() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let worker = world.worker();
    // The kick was lost; the relay's message comes, and then the kick after all.
    let row = world.only().await;
    let mut batch = vec![message(row.delivery_id, 1, 1)];
    batch.push(message(row.delivery_id, 1, 1));
    assert_eq!(
        worker.process(batch.clone()).await.failures,
        Vec::<String>::new()
    );
    assert_eq!(worker.process(batch).await.failures, Vec::<String>::new());
    assert_eq!(consumer.requests().len(), 1);
}

#[tokio::test]
async fn wrk_05_one_poison_message_does_not_fail_its_neighbours() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..9 {
        world.event(b"{}").await;
    }
    let dead = Arc::new(LocalQueue::new(Duration::from_secs(3600)));
    let queue = LocalQueue::new(Duration::ZERO).with_dead_letters(Arc::clone(&dead), 3);
    let queue = Arc::new(queue);
    let mut bodies: Vec<String> = world
        .messages()
        .await
        .iter()
        .map(|record| record.body().to_owned())
        .collect();
    bodies.insert(3, "CANARY".to_owned());
    let logs = LogCapture::start();
    queue.send(&bodies).await;
    let (stop, stopped) = watch::channel(false);
    let polling = tokio::spawn(poller::run(world.worker(), Arc::clone(&queue), 1, stopped));
    until(|| async { dead.depth().await.unwrap() == 1 }).await;
    until(|| async { world.ended("succeeded").await == 9 }).await;
    stop.send_replace(true);
    polling.await.unwrap();
    assert_eq!(consumer.requests().len(), 9, "each has one effect");
    assert_eq!(
        logs.text().matches("none of ours").count(),
        3,
        "received three times"
    );
    assert!(!logs.contains("CANARY"));
}

#[tokio::test]
async fn wrk_05_what_fails_at_its_destination_is_no_failure_of_its_message() {
    let world = World::new().await;
    let consumer = Consumer::answering(500).await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let answer = world.worker().process(world.messages().await).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    assert_eq!(world.only().await.state, "pending");
}

/// A worker behind a proxy.
async fn behind(world: &World) -> (FaultProxy, Worker) {
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let connections = connections(&proxy.url(), 2);
    let worker = worker_over(
        connections.clone(),
        connections,
        Default::default(),
        |settings| {
            settings.claim_patience = Duration::from_millis(300);
            settings.finish_reserve = Duration::from_millis(500);
        },
    );
    (proxy, worker)
}

#[tokio::test]
async fn wrk_06_every_message_is_returned_while_the_database_is_away_and_none_is_lost() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..3 {
        world.event(b"{}").await;
    }
    let (proxy, worker) = behind(&world).await;
    proxy.set(Fault::Refuse);
    let messages = world.messages().await;
    let answer = worker.process(messages.clone()).await;
    assert_eq!(answer.failures, ids(&messages), "ids as they came");
    let written = serde_json::to_value(SqsAnswer::from(answer)).unwrap();
    let expected: Vec<_> = ids(&messages)
        .iter()
        .map(|id| json!({"itemIdentifier": id}))
        .collect();
    assert_eq!(written, json!({"batchItemFailures": expected}));
    assert_eq!(consumer.requests().len(), 0);
    proxy.set(Fault::None);
    assert_eq!(
        worker.process(messages).await.failures,
        Vec::<String>::new()
    );
    assert_eq!(world.ended("succeeded").await, 3);
}

#[tokio::test]
async fn wrk_06_messages_whose_ends_cannot_be_written_are_returned_and_the_lease_runs_out() {
    let world = World::new().await;
    let (proxy, worker) = behind(&world).await;
    let cut = Arc::new(proxy);
    let at_answer = Arc::clone(&cut);
    let consumer = Consumer::replying(move |_, number| {
        if number == 1 {
            at_answer.set(Fault::Refuse);
            at_answer.cut();
        }
        crate::world::Reply::status(200)
    })
    .await;
    let policy = json!({"timeout_ms": 1000, "jitter": 0});
    world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    world.event(b"{}").await;
    let mut messages = world.messages().await;
    // Two messages for one attempt, and one that has nothing to do.
    messages.push(message(world.only().await.delivery_id, 1, 1));
    let failed = ids(&messages);
    messages.push(message(world.only().await.delivery_id, 1, 7));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(2);
    let answer = worker.process_by(messages, deadline).await;
    assert_eq!(answer.failures, failed);
    cut.set(Fault::None);
    world.expire_leases().await;
    world.reap().await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 2));
}

#[tokio::test]
async fn an_end_is_written_when_the_database_comes_back_in_time() {
    let world = World::new().await;
    let (proxy, worker) = behind(&world).await;
    let proxy = Arc::new(proxy);
    let at_answer = Arc::clone(&proxy);
    let consumer = Consumer::replying(move |_, _| {
        at_answer.set(Fault::Refuse);
        at_answer.cut();
        crate::world::Reply::status(200)
    })
    .await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let messages = world.messages().await;
    let processing = tokio::spawn(async move { worker.process(messages).await });
    consumer.wait_for(1).await;
    // It is refused at least once, and finds the way afterwards.
    let refused = proxy.accepted();
    until(|| async { proxy.accepted() > refused }).await;
    proxy.set(Fault::None);
    assert_eq!(processing.await.unwrap().failures, Vec::<String>::new());
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 1));
    assert_eq!(consumer.requests().len(), 1);
}

#[tokio::test]
async fn wrk_09_a_message_that_comes_before_its_row_is_a_no_op_and_the_next_one_works() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let row = world.only().await;
    let worker = world.worker();
    let mut writer = world.database.connect().await;
    let mut transaction = writer.begin().await.unwrap();
    // The same row, not committed.
    sqlx::raw_sql(
        "create table hidden as select * from hookstead.live_deliveries;
         delete from hookstead.live_deliveries;
         insert into hookstead.live_deliveries select * from hidden;
         drop table hidden",
    )
    .execute(&mut *transaction)
    .await
    .unwrap();
    let unseen = uuid::Uuid::from_u128(row.delivery_id.as_u128() ^ 1);
    let answer = worker.process(vec![message(unseen, 1, 1)]).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    // A row that somebody holds is not waited for.
    let answer = worker.process(vec![message(row.delivery_id, 1, 1)]).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    assert_eq!(consumer.requests().len(), 0);
    transaction.commit().await.unwrap();
    world.work(&worker).await;
    assert_eq!(world.only().await.state, "succeeded");
}

fn notice(world: &crate::world::DeliveryRow, event: hookstead_domain::EventId) -> QueueRecord {
    let notice = QueueMessage::DeadLetter(DeadLetterNotice {
        delivery_id: hookstead_domain::DeliveryId::from_uuid(world.delivery_id),
        round: world.round.cast_unsigned(),
        attempt_count: world.attempt_count.cast_unsigned(),
        event_id: event,
        subscription_id: SubscriptionId::from_uuid(world.subscription_id),
        state_reason: DeadLetterReason::BudgetSpent,
    });
    record(&notice.encode())
}

#[tokio::test]
async fn a_notice_that_is_moved_back_delivers_its_dead_letter_in_a_new_round() {
    let world = World::new().await;
    let consumer = Consumer::replying(|_, number| {
        crate::world::Reply::status(if number == 1 { 500 } else { 200 })
    })
    .await;
    let policy = json!({"schedule_s": []});
    world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    let event = world.event(b"{}").await;
    let worker = world.worker();
    world.work(&worker).await;
    let dead = world.only().await;
    assert_eq!(dead.state, "dead_letter");
    let answer = worker
        .process(vec![notice(&dead, event), notice(&dead, event)])
        .await;
    assert_eq!(answer.failures, Vec::<String>::new());
    let row = world.done().await.pop().unwrap();
    assert_eq!(
        (row.state.as_str(), row.round, row.attempt_count),
        ("succeeded", 2, 1)
    );
    // Now the notice is stale.
    let answer = worker.process(vec![notice(&dead, event)]).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    assert_eq!(consumer.requests().len(), 2);
    assert_eq!(world.done().await.len(), 2);
    assert_eq!(world.live().await.len(), 0);
}

#[tokio::test]
async fn a_notice_is_returned_while_the_database_is_away() {
    let world = World::new().await;
    let (proxy, worker) = behind(&world).await;
    proxy.set(Fault::Refuse);
    let row = crate::world::DeliveryRow::example();
    let event = hookstead_domain::EventId::from_uuid(row.delivery_id);
    let notice = notice(&row, event);
    let answer = worker.process(vec![notice.clone()]).await;
    assert_eq!(answer.failures, [notice.message_id()]);
}
