//! Subscriptions that fail, and those that are limited.

use serde_json::json;

use crate::world::{Consumer, Reply, World};

const FAILURES: &str = "select consecutive_failures::bigint from hookstead.subscriptions";
const PAUSED_S: &str = "select coalesce(round(extract(epoch from paused_until - now())), 0)::bigint from hookstead.subscriptions";

async fn disabled_reason(world: &World) -> Option<String> {
    let mut connection = world.database.connect().await;
    sqlx::query_scalar("select disabled_reason from hookstead.subscriptions where name = 'shop'")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn of_three_subscriptions_one_fails_and_the_others_do_not_notice() {
    let world = World::new().await;
    let good = Consumer::answering(200).await;
    let bad = Consumer::answering(500).await;
    world.subscribe_http("a", &good).await;
    let failing = world.subscribe_http("b", &bad).await;
    world.subscribe_http("c", &good).await;
    world.event(b"{}").await;
    let worker = world.worker();
    world.work(&worker).await;
    world.work(&worker).await;
    assert_eq!(world.ended("succeeded").await, 2);
    let row = world.only_live().await;
    assert_eq!((row.subscription_id, row.attempt_count), (failing, 2));
    assert_eq!((good.requests().len(), bad.requests().len()), (2, 2));
    // The second wait of the default schedule, without jitter.
    let wait = row.next_attempt_at.unwrap() - row.last_attempt_at.unwrap();
    assert!((299..=310).contains(&wait.whole_seconds()), "{wait}");
}

#[tokio::test]
async fn a_destination_that_only_fails_is_left_alone_and_then_tried_one_at_a_time() {
    let world = World::new().await;
    let consumer =
        Consumer::replying(|_, number| Reply::status(if number <= 10 { 500 } else { 200 })).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..15 {
        world.event(b"{}").await;
    }
    let worker = world.worker();
    let messages = world.messages().await;
    worker.process(messages[..10].to_vec()).await;
    assert_eq!(world.number(FAILURES).await, 10);
    let paused_s = world.number(PAUSED_S).await;
    assert!((1..=30).contains(&paused_s), "{paused_s}");
    // Nothing is attempted meanwhile, and nothing is counted.
    worker.process(messages[10..].to_vec()).await;
    assert_eq!(consumer.requests().len(), 10);
    let untouched = world
        .live()
        .await
        .into_iter()
        .filter(|row| row.attempt_count == 0);
    let untouched: Vec<_> = untouched.collect();
    assert_eq!(untouched.len(), 5);
    let waits = untouched[0].next_attempt_at.unwrap() - time::OffsetDateTime::now_utc();
    assert!(waits.whole_seconds() >= 0, "moved beyond the pause");
    // The pause is over: one attempt, and its success closes the circuit.
    world
        .execute("update hookstead.subscriptions set paused_until = now() - interval '1 second'")
        .await;
    worker.process(messages[10..].to_vec()).await;
    assert_eq!(consumer.requests().len(), 11);
    assert_eq!(world.number(FAILURES).await, 0);
    worker.process(messages[10..].to_vec()).await;
    assert_eq!(consumer.requests().len(), 15);
}

#[tokio::test]
async fn the_longer_it_has_failed_the_longer_is_the_pause() {
    let world = World::new().await;
    let consumer = Consumer::answering(500).await;
    world.subscribe_http("shop", &consumer).await;
    world
        .execute(
            "update hookstead.subscriptions
             set consecutive_failures = 11, first_failure_at = now() - interval '100 seconds'",
        )
        .await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let paused_s = world.number(PAUSED_S).await;
    assert!((60..=130).contains(&paused_s), "{paused_s}");
}

#[tokio::test]
async fn out_10_a_410_switches_the_subscription_off_and_says_so() {
    let world = World::new().await;
    let consumer = Consumer::answering(410).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..2 {
        world.event(b"{}").await;
    }
    let worker = world.worker();
    let messages = world.messages().await;
    worker.process(messages[..1].to_vec()).await;
    assert_eq!(disabled_reason(&world).await.as_deref(), Some("gone"));
    let done = world.done().await;
    assert_eq!(done[0].state_reason.as_deref(), Some("gone"));
    let announced =
        "select count(*) from hookstead.outbox where event_type = 'subscription.disabled'";
    assert_eq!(world.number(announced).await, 1);
    worker.process(messages[1..].to_vec()).await;
    assert_eq!(consumer.requests().len(), 1, "what is queued stays queued");
}

#[tokio::test]
async fn five_days_of_nothing_but_failures_switch_a_subscription_off() {
    let world = World::new().await;
    let consumer = Consumer::answering(500).await;
    world.subscribe_http("shop", &consumer).await;
    for (age, reason) in [
        ("4 days 23 hours", None),
        ("5 days 1 second", Some("failing")),
    ] {
        world
            .execute(&format!(
                "update hookstead.subscriptions set paused_until = null,
                     consecutive_failures = 20, first_failure_at = now() - interval '{age}'"
            ))
            .await;
        world.event(b"{}").await;
        let newest = world.messages().await.pop().unwrap();
        world.worker().process(vec![newest]).await;
        assert_eq!(disabled_reason(&world).await.as_deref(), reason, "{age}");
    }
}

#[tokio::test]
async fn out_13_nothing_starts_after_a_subscription_was_switched_off() {
    let world = World::new().await;
    let consumer = Consumer::answering(500).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..20 {
        world.event(b"{}").await;
    }
    let worker = world.worker_with(Default::default(), |settings| {
        settings.max_leases_per_subscription = 100;
    });
    let first = world.messages().await;
    worker.process(first).await;
    assert_eq!(consumer.requests().len(), 20);
    world
        .execute("update hookstead.subscriptions set disabled_at = now(), paused_until = null")
        .await;
    world.work(&worker).await;
    assert_eq!(consumer.requests().len(), 20);
    // The rows stay as they are, for the relay to cancel.
    assert!(world.live().await.iter().all(|row| row.attempt_count == 1));
}

#[tokio::test]
async fn a_rate_limit_lets_a_second_s_worth_through_and_moves_the_rest() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    world
        .execute("update hookstead.subscriptions set rate_limit_per_s = 4")
        .await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    world.work(&world.worker()).await;
    assert_eq!(consumer.requests().len(), 4);
    let live = world.live().await;
    assert_eq!(live.len(), 6);
    let now = time::OffsetDateTime::now_utc();
    assert!(
        live.iter()
            .all(|row| row.attempt_count == 0 && row.state == "pending")
    );
    assert!(
        live.iter()
            .filter(|row| row.next_attempt_at.unwrap() > now)
            .count()
            >= 5
    );
}

#[tokio::test]
async fn a_subscription_has_no_more_leases_at_once_than_it_may() {
    let world = World::new().await;
    let consumer = Consumer::hanging().await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    let worker = world.worker_with(Default::default(), |settings| {
        settings.max_leases_per_subscription = 3;
    });
    let messages = world.messages().await;
    let first = tokio::spawn({
        let (worker, messages) = (worker.clone(), messages.clone());
        async move { worker.process(messages).await }
    });
    consumer.wait_for(3).await;
    // All three are taken.
    assert_eq!(
        worker.process(messages).await.failures,
        Vec::<String>::new()
    );
    assert_eq!(consumer.requests().len(), 3);
    worker.stop();
    first.await.unwrap();
}

#[tokio::test]
async fn a_success_ends_a_row_of_failures() {
    let world = World::new().await;
    let consumer =
        Consumer::replying(|_, number| Reply::status(if number <= 3 { 503 } else { 200 })).await;
    world
        .subscribe(
            "shop",
            consumer.destination("x"),
            json!({"schedule_s": [0, 0, 0]}),
        )
        .await;
    world.event(b"{}").await;
    let worker = world.worker();
    for failures in [1, 2, 3, 0] {
        world.work(&worker).await;
        assert_eq!(world.number(FAILURES).await, failures);
    }
}
