//! What goes into the queue: what is due, each once, fairly, and again if it was lost.

use std::collections::HashSet;
use std::time::Duration;

use hookstead_domain::{AttemptReason, DeliveryId};
use hookstead_store::relaying::{
    DispatchDue, Due, dispatch_due, next_due_in, postpone_paused, redispatch_lost, unschedule,
};
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::{Fault, FaultProxy, role};

use crate::owed::{owed, request, try_claim, words};
use crate::relaying_support::{Relaying, relaying};

/// Time in the queue after which a message counts as lost.
const LOST: Duration = Duration::from_secs(120);

fn ids(due: &[Due]) -> HashSet<DeliveryId> {
    due.iter().map(|due| due.delivery_id).collect()
}

async fn dispatch(relaying: &mut Relaying, limit: u16) -> Vec<Due> {
    dispatch_due(&mut relaying.relay, limit).await.unwrap()
}

/// Makes every mark so many seconds older.
async fn age(relaying: &mut Relaying, seconds: u32) {
    let sql = format!(
        "update hookstead.live_deliveries set scheduled_at = scheduled_at - interval '{seconds} s'"
    );
    relaying.fixture.run(&sql).await;
}

#[tokio::test]
async fn what_is_due_goes_into_the_queue_once_and_what_is_not_stays() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 3, 1).await;
    relaying.owe(orders, 2, -60).await;
    let due = dispatch(&mut relaying, 10).await;
    assert_eq!(ids(&due).len(), 3);
    let request = due[0].request();
    assert_eq!((request.round, request.attempt), (1, 1));
    assert_eq!(request.reason, AttemptReason::Due);
    assert_eq!(dispatch(&mut relaying, 10).await, []);
    let sql = "select count(scheduled_at) || ' of ' || count(*) from hookstead.live_deliveries";
    assert_eq!(relaying.value(sql).await, "3 of 5");
}

#[tokio::test]
async fn what_its_consumer_fetches_never_goes_into_the_queue_and_wakes_nobody() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 2, 1).await;
    relaying
        .fixture
        .run("update hookstead.subscriptions set destination = '{\"kind\": \"pull\"}'")
        .await;
    assert_eq!(dispatch(&mut relaying, 10).await, []);
    assert_eq!(next_due_in(&mut relaying.relay).await.unwrap(), None);
}

#[tokio::test]
async fn a_later_attempt_of_a_later_round_is_asked_for_by_its_number() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 1, 1).await;
    relaying
        .fixture
        .run("update hookstead.live_deliveries set round = 3, attempt_count = 4, last_attempt_at = now()")
        .await;
    let due = dispatch(&mut relaying, 10).await;
    assert_eq!((due[0].round, due[0].attempt), (3, 5));
}

#[tokio::test]
async fn out_03_what_the_queue_refuses_is_given_back_and_what_was_claimed_meanwhile_is_not() {
    let mut owed = owed().await;
    owed.fixture.subscribe("orders").await;
    for n in 0..3 {
        owed.receive(&format!("evt_{n}")).await;
    }
    let mut relay = owed.fixture.database.connect_as(role::RELAY).await;
    let due = dispatch_due(&mut relay, 10).await.unwrap();
    let claimed = request(due[0].delivery_id, 1, 1);
    assert_eq!(
        words(&try_claim(&mut owed.worker, &[claimed]).await),
        ["claimed"]
    );
    assert_eq!(unschedule(&mut relay, &due[..2]).await.unwrap(), 1);
    assert_eq!(unschedule(&mut relay, &due[..2]).await.unwrap(), 0);
    let again = dispatch_due(&mut relay, 10).await.unwrap();
    assert_eq!(again, due[1..2]);
}

#[tokio::test]
async fn two_relays_that_race_never_mark_the_same_delivery() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 400, 1).await;
    let mut other = relaying.another_relay().await;
    let (one, two) = tokio::join!(
        dispatch_due(&mut relaying.relay, 250),
        dispatch_due(&mut other, 250)
    );
    let (mut all, two) = (one.unwrap(), two.unwrap());
    all.extend(two);
    all.extend(dispatch(&mut relaying, 400).await);
    assert_eq!(all.len(), 400);
    assert_eq!(ids(&all).len(), 400);
}

#[tokio::test]
async fn a_relay_that_finds_the_first_rows_taken_goes_on_to_the_next() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 10, 60).await;
    relaying.owe(orders, 10, 1).await;
    let mut other = relaying.fixture.database.connect().await;
    crate::support::run(
        &mut other,
        "begin; select from hookstead.live_deliveries
         where next_attempt_at < now() - interval '30 s' for update",
    )
    .await;
    assert_eq!(dispatch(&mut relaying, 10).await.len(), 10);
}

#[tokio::test]
async fn out_08_a_backlog_of_one_subscription_hides_nobody() {
    let mut relaying = relaying().await;
    let dead = relaying.fixture.subscribe("dead").await;
    relaying.owe(dead, 20_000, 3600).await;
    let mut healthy = Vec::new();
    for n in 0..5 {
        let id = relaying.fixture.subscribe(&format!("healthy-{n}")).await;
        relaying.owe(id, 2, 1).await;
        healthy.push(id);
    }
    assert_eq!(dispatch(&mut relaying, 20).await.len(), 20);
    let sql = "select string_agg(n::text, ' ' order by n) from (
                   select count(scheduled_at) n from hookstead.live_deliveries group by subscription_id) x";
    assert_eq!(relaying.value(sql).await, "2 2 2 2 2 10");
}

#[tokio::test]
async fn many_subscriptions_share_a_call_and_the_oldest_come_first() {
    let mut relaying = relaying().await;
    for n in 0..30 {
        let id = relaying.fixture.subscribe(&format!("s-{n}")).await;
        relaying.owe(id, 3, 100 - n).await;
    }
    assert_eq!(dispatch(&mut relaying, 10).await.len(), 10);
    let sql =
        "select string_agg(name, ' ' order by l.next_attempt_at) from hookstead.live_deliveries l
               join hookstead.subscriptions using (subscription_id) where scheduled_at is not null";
    let names = (0..10).map(|n| format!("s-{n}")).collect::<Vec<_>>();
    assert_eq!(relaying.value(sql).await, names.join(" "));
    assert_eq!(
        next_due_in(&mut relaying.relay).await.unwrap(),
        Some(Duration::ZERO)
    );
}

#[tokio::test]
async fn out_13_paused_and_disabled_subscriptions_get_nothing_into_the_queue() {
    let mut relaying = relaying().await;
    for (name, column) in [("paused", "paused_until"), ("off", "disabled_at")] {
        let value = "now() + interval '1 minute'";
        let id = relaying.fixture.subscribe_with(name, column, value).await;
        relaying.owe(id, 2, 1).await;
    }
    assert_eq!(dispatch(&mut relaying, 10).await, []);
    age(&mut relaying, 0).await;
    relaying
        .fixture
        .run("update hookstead.live_deliveries set scheduled_at = now() - interval '1 h'")
        .await;
    let lost = redispatch_lost(&mut relaying.relay, LOST, 10)
        .await
        .unwrap();
    assert_eq!(lost, []);
}

#[tokio::test]
async fn wrk_02_a_message_that_was_lost_is_sent_again_and_only_then() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 2, 1).await;
    let due = dispatch(&mut relaying, 10).await;
    age(&mut relaying, 100).await;
    assert_eq!(
        redispatch_lost(&mut relaying.relay, LOST, 10)
            .await
            .unwrap(),
        []
    );
    age(&mut relaying, 30).await;
    let again = redispatch_lost(&mut relaying.relay, LOST, 10)
        .await
        .unwrap();
    assert_eq!(ids(&again), ids(&due));
    assert_eq!(
        redispatch_lost(&mut relaying.relay, LOST, 10)
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn two_relays_that_race_for_lost_messages_send_each_once() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 100, 1).await;
    dispatch(&mut relaying, 100).await;
    age(&mut relaying, 200).await;
    let mut other = relaying.another_relay().await;
    let (one, two) = tokio::join!(
        redispatch_lost(&mut relaying.relay, LOST, 100),
        redispatch_lost(&mut other, LOST, 100)
    );
    let mut all = one.unwrap();
    all.extend(two.unwrap());
    all.extend(
        redispatch_lost(&mut relaying.relay, LOST, 100)
            .await
            .unwrap(),
    );
    assert_eq!((all.len(), ids(&all).len()), (100, 100));
}

#[tokio::test]
async fn a_relay_whose_answer_is_lost_loses_no_delivery() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    let proxy = FaultProxy::start(&relaying.fixture.database.url_as(role::RELAY)).await;
    let connections = Connections::from_url(&proxy.url(), ConnectionLimits::default()).unwrap();
    let few = DispatchDue { limit: 3 };
    // Prepared, so that the next one is a single message.
    assert_eq!(connections.run(&few).await.unwrap(), []);
    relaying.owe(orders, 5, 1).await;
    proxy.set(Fault::DropReplies);
    let task = tokio::spawn(async move { connections.run(&few).await });
    let marked =
        "select count(*)::text from hookstead.live_deliveries where scheduled_at is not null";
    while relaying.value(marked).await != "3" {}
    task.abort();
    assert_eq!(dispatch(&mut relaying, 10).await.len(), 2);
    age(&mut relaying, 200).await;
    let all = redispatch_lost(&mut relaying.relay, LOST, 10)
        .await
        .unwrap();
    assert_eq!(ids(&all).len(), 5);
}

#[tokio::test]
async fn a_dispatch_that_fails_marks_nothing_and_the_next_one_works() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 5, 1).await;
    let table = "alter table hookstead.live_deliveries";
    relaying
        .fixture
        .run(&format!(
            "{table} add constraint injected check (scheduled_at is null)"
        ))
        .await;
    dispatch_due(&mut relaying.relay, 10).await.unwrap_err();
    relaying
        .fixture
        .run(&format!("{table} drop constraint injected"))
        .await;
    assert_eq!(dispatch(&mut relaying, 10).await.len(), 5);
}

#[tokio::test]
async fn what_is_due_during_a_pause_moves_by_a_minute_spread_over_ten_seconds() {
    let mut relaying = relaying().await;
    let until = "now() + interval '1 hour'";
    let paused = relaying
        .fixture
        .subscribe_with("paused", "paused_until", until)
        .await;
    let open = relaying.fixture.subscribe("open").await;
    relaying.owe(paused, 50, 1).await;
    relaying.owe(paused, 1, -600).await;
    relaying.owe(open, 1, 1).await;
    let mut other = relaying.another_relay().await;
    let (one, two) = tokio::join!(
        postpone_paused(&mut relaying.relay, 30),
        postpone_paused(&mut other, 30)
    );
    let rest = postpone_paused(&mut relaying.relay, 100).await.unwrap();
    assert_eq!(one.unwrap() + two.unwrap() + rest, 50);
    assert_eq!(postpone_paused(&mut relaying.relay, 100).await.unwrap(), 0);
    let sql = "select concat_ws(' ', count(*), count(distinct next_attempt_at) > 40, sum(attempt_count))
               from hookstead.live_deliveries l join hookstead.subscriptions s using (subscription_id)
               where s.name = 'paused'
                 and next_attempt_at between now() + interval '30 s' and now() + interval '70 s'";
    assert_eq!(relaying.value(sql).await, "50 t 0");
}

#[tokio::test]
async fn of_a_subscription_that_fails_or_is_limited_little_stands_in_the_queue() {
    let mut relaying = relaying().await;
    let failing = relaying.fixture.subscribe("failing").await;
    let limited = relaying
        .fixture
        .subscribe_with("limited", "rate_limit_per_s", "5")
        .await;
    let free = relaying.fixture.subscribe("free").await;
    relaying
        .fixture
        .run(
            "update hookstead.subscriptions
              set consecutive_failures = 10, first_failure_at = now() where name = 'failing'",
        )
        .await;
    for subscription in [failing, limited, free] {
        relaying.owe(subscription, 40, 1).await;
    }
    assert_eq!(dispatch(&mut relaying, 500).await.len(), 1 + 10 + 40);
    assert_eq!(
        dispatch(&mut relaying, 500).await,
        [],
        "until those are claimed"
    );
}

#[tokio::test]
async fn the_next_due_time_is_known_without_looking_at_every_delivery() {
    let mut relaying = relaying().await;
    assert_eq!(next_due_in(&mut relaying.relay).await.unwrap(), None);
    let off = relaying
        .fixture
        .subscribe_with("off", "disabled_at", "now()")
        .await;
    relaying.owe(off, 1, 1).await;
    assert_eq!(next_due_in(&mut relaying.relay).await.unwrap(), None);
    let until = "now() + interval '1 hour'";
    let paused = relaying
        .fixture
        .subscribe_with("paused", "paused_until", until)
        .await;
    relaying.owe(paused, 1, 1).await;
    let wait = next_due_in(&mut relaying.relay).await.unwrap().unwrap();
    assert!(
        wait > Duration::from_secs(3000) && wait <= Duration::from_secs(3600),
        "{wait:?}"
    );
    let open = relaying.fixture.subscribe("open").await;
    relaying.owe(open, 1, -600).await;
    let wait = next_due_in(&mut relaying.relay).await.unwrap().unwrap();
    assert!(
        wait > Duration::from_secs(300) && wait <= Duration::from_secs(600),
        "{wait:?}"
    );
    relaying.owe(open, 1, 5).await;
    assert_eq!(
        next_due_in(&mut relaying.relay).await.unwrap(),
        Some(Duration::ZERO)
    );
}
