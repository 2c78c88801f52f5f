//! How rounds end.

use serde_json::json;

use crate::world::{Consumer, Reply, World, message};

#[tokio::test]
async fn out_07_attempts_are_counted_written_down_and_end() {
    let world = World::new().await;
    let consumer = Consumer::answering(403).await;
    let policy = json!({"schedule_s": [1, 1], "jitter": 0, "give_up_after_identical": null});
    world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    world.event(b"{}").await;
    let worker = world.worker();
    for _ in 0..5 {
        world.work(&worker).await;
    }
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("dead_letter", 3));
    assert_eq!(row.state_reason.as_deref(), Some("budget_spent"));
    let attempts = world.attempts(row.delivery_id).await;
    assert_eq!(attempts.len(), 3);
    for (number, attempt) in (1..).zip(&attempts) {
        assert_eq!((attempt.round, attempt.attempt_number), (1, number));
        assert_eq!(attempt.status_code, Some(403));
        assert!(attempt.latency_ms.is_some() && attempt.ended_at >= attempt.started_at);
    }
    // No message moves it any more.
    for attempt in 1..5 {
        worker
            .process(vec![message(row.delivery_id, 1, attempt)])
            .await;
    }
    assert_eq!(consumer.requests().len(), 3);
}

#[tokio::test]
async fn rpl_02_what_is_exhausted_is_a_dead_letter_with_its_reason_and_a_notice() {
    let world = World::new().await;
    let consumer = Consumer::answering(500).await;
    world
        .subscribe(
            "shop",
            consumer.destination("shop"),
            json!({"schedule_s": []}),
        )
        .await;
    let event = world.event(b"{}").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.state, "dead_letter");
    assert_eq!(row.state_reason.as_deref(), Some("budget_spent"));
    assert_eq!(row.last_error_class.as_deref(), Some("server_error"));
    let noticed = format!(
        "select count(*) from hookstead.dead_letter_notices
         where delivery_id = '{}' and round = 1 and event_id = '{event}'
           and state_reason = 'budget_spent' and attempt_count = 1",
        row.delivery_id
    );
    assert_eq!(world.number(&noticed).await, 1);
}

#[tokio::test]
async fn equal_refusals_in_a_row_end_a_delivery_and_different_ones_do_not() {
    let world = World::new().await;
    let equal = Consumer::replying(|_, _| Reply::status(404).body("no such hook")).await;
    let changing = Consumer::replying(|_, number| {
        Reply::status(404).body(if number % 2 == 0 { "even" } else { "odd" })
    })
    .await;
    let policy = json!({"schedule_s": [0, 0, 0, 0], "jitter": 0, "give_up_after_identical": 3});
    let ended = world
        .subscribe("equal", equal.destination("x"), policy.clone())
        .await;
    world
        .subscribe("changing", changing.destination("x"), policy)
        .await;
    world.event(b"{}").await;
    let worker = world.worker();
    for _ in 0..4 {
        world.work(&worker).await;
    }
    let done = world.done().await;
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].subscription_id, done[0].attempt_count), (ended, 3));
    assert_eq!(done[0].state_reason.as_deref(), Some("identical_answers"));
    assert_eq!((equal.requests().len(), changing.requests().len()), (3, 4));
}

#[tokio::test]
async fn out_11_retry_after_puts_the_next_attempt_off() {
    let world = World::new().await;
    let consumer = Consumer::replying(|_, _| Reply::status(429).with("retry-after", "120")).await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    let wait = row.next_attempt_at.unwrap() - row.last_attempt_at.unwrap();
    assert!((120..=140).contains(&wait.whole_seconds()), "{wait}");
}

#[tokio::test]
async fn a_consumer_can_skip_and_defer() {
    let world = World::new().await;
    let consumer = Consumer::replying(|request, _| {
        let word = if request.path == "/skips" {
            "skipped"
        } else {
            "deferred"
        };
        Reply::status(200).with("hookstead-outcome", word)
    })
    .await;
    world.subscribe_http("skips", &consumer).await;
    world.subscribe_http("defers", &consumer).await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let done = world.done().await;
    assert_eq!((done.len(), done[0].state.as_str()), (1, "skipped"));
    let live = world.live().await;
    assert_eq!(live[0].state_reason.as_deref(), Some("consumer_deferred"));
}

#[tokio::test]
async fn an_event_that_is_no_longer_stored_ends_its_delivery() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    world.execute("delete from hookstead.events").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.last_error_class.as_deref(), Some("event_missing"));
    assert_eq!(row.state_reason.as_deref(), Some("permanent_failure"));
    assert_eq!(consumer.requests().len(), 0);
}

#[tokio::test]
async fn a_report_is_written_with_the_end_only_where_somebody_is_told() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    let worker = world.worker();
    world.event(b"{}").await;
    world.work(&worker).await;
    world
        .execute("update hookstead.installation set reporting_since = now()")
        .await;
    world.event(b"{}").await;
    world.work(&worker).await;
    assert_eq!(
        world.number("select count(*) from hookstead.reports").await,
        1
    );
}

#[tokio::test]
async fn wrk_05_one_end_that_the_database_refuses_costs_its_neighbours_nothing() {
    let world = World::new().await;
    world
        .execute("alter table hookstead.attempts add constraint odd check (status_code <> 299)")
        .await;
    let consumer =
        Consumer::replying(|_, number| Reply::status(if number == 4 { 299 } else { 200 })).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let answer = world.worker().process(messages.clone()).await;
    assert_eq!(world.ended("succeeded").await, 9);
    let bad = world.only_live().await.delivery_id.to_string();
    let bad = messages
        .iter()
        .find(|message| message.body().contains(&bad))
        .unwrap();
    assert_eq!(answer.failures, [bad.message_id()]);
}

#[tokio::test]
async fn wrk_05_one_row_without_a_partition_of_its_day_costs_its_neighbours_nothing() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    // Of a day in 2020.
    let bad = "016f5e66-e800-7000-8000-000000000001";
    let moved = world.live().await[3].delivery_id;
    world
        .execute(&format!(
            "update hookstead.live_deliveries set delivery_id = '{bad}'
             where delivery_id = '{moved}'"
        ))
        .await;
    let messages = world.messages().await;
    let answer = world.worker().process(messages.clone()).await;
    assert_eq!(world.ended("succeeded").await, 9);
    assert_eq!(world.only_live().await.delivery_id.to_string(), bad);
    let bad = messages.iter().find(|message| message.body().contains(bad));
    assert_eq!(answer.failures, [bad.unwrap().message_id()]);
}

#[tokio::test]
async fn wrk_05_one_row_that_cannot_be_read_costs_its_neighbours_nothing() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let bad = world.live().await[3].delivery_id;
    world
        .execute(&format!(
            "update hookstead.live_deliveries set policy = '{{\"timeout_ms\": 1}}'
             where delivery_id = '{bad}'"
        ))
        .await;
    let answer = world.worker().process(messages.clone()).await;
    assert_eq!(world.ended("succeeded").await, 9);
    let bad = messages
        .iter()
        .find(|message| message.body().contains(&bad.to_string()));
    assert_eq!(answer.failures, [bad.unwrap().message_id()]);
}
