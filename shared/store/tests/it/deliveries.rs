//! Looking at deliveries: lists, one with its history, what is new.

use std::time::Duration;

use hookstead_domain::{DeliveryId, EventId, StateName, SubscriptionId};
use hookstead_store::{
    DeliveryFilter, attempts_of, ingest, list_deliveries, recent, show_delivery,
};
use hookstead_testkit::role;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::support::{Fixture, event, fixture};

/// How far back the tests look: longer than any of them runs.
const LATELY: Duration = Duration::from_secs(300);

fn filter() -> DeliveryFilter {
    DeliveryFilter {
        limit: 100,
        ..DeliveryFilter::default()
    }
}

async fn store(fixture: &mut Fixture, key: &str) -> EventId {
    let mut receiver = fixture.receiver().await;
    let new = event(fixture.source, key, b"{}");
    ingest(&mut receiver, &new).await.unwrap();
    new.event_id
}

fn id(event: EventId, subscription: Uuid) -> DeliveryId {
    DeliveryId::derive(event, SubscriptionId::from_uuid(subscription))
}

/// Ends the live round as a worker would: one attempt, and the archive row.
async fn end(fixture: &mut Fixture, delivery: DeliveryId, state: &str, reason: Option<&str>) {
    let reason = reason.map_or("null".to_owned(), |reason| format!("'{reason}'"));
    fixture
        .run(&format!(
            "insert into hookstead.done_deliveries (
                 delivery_id, event_id, subscription_id, created_at, last_attempt_at, round,
                 attempt_count, attempt_budget, state, state_reason, last_error_class)
             select delivery_id, event_id, subscription_id, created_at, now(), round, 1,
                    attempt_budget, '{state}', {reason}, null
             from hookstead.live_deliveries where delivery_id = '{delivery}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, latency_ms, status_code,
                 outcome, error_class, response_sha256, response_headers)
             select delivery_id, round, 1, now(), now(), 12, 503, 'fail', 'server_error',
                    sha256('x'), '{{\"retry-after\": \"5\"}}'
             from hookstead.live_deliveries where delivery_id = '{delivery}';
             delete from hookstead.live_deliveries where delivery_id = '{delivery}';"
        ))
        .await;
}

async fn rearm(fixture: &mut Fixture, delivery: DeliveryId) {
    fixture
        .run(&format!(
            "insert into hookstead.live_deliveries (
                 delivery_id, event_id, subscription_id, next_attempt_at, round, attempt_budget)
             select delivery_id, event_id, subscription_id, now(), max(round) + 1, 10
             from hookstead.done_deliveries where delivery_id = '{delivery}'
             group by 1, 2, 3"
        ))
        .await;
}

async fn listed(connection: &mut PgConnection, filter: &DeliveryFilter) -> Vec<DeliveryId> {
    let rows = list_deliveries(connection, filter).await.unwrap();
    rows.into_iter()
        .map(|row| row.delivery.delivery_id)
        .collect()
}

#[tokio::test]
async fn a_list_has_every_delivery_once_in_its_last_round_newest_first() {
    let mut fixture = fixture().await;
    let (a, b) = (fixture.subscribe("a").await, fixture.subscribe("b").await);
    let mut all = Vec::new();
    for n in 0..3 {
        let event = store(&mut fixture, &format!("evt_{n}")).await;
        all.extend([id(event, a), id(event, b)]);
    }
    all.sort();
    all.reverse();
    let dead = all[1];
    end(&mut fixture, dead, "dead_letter", Some("budget_spent")).await;
    end(&mut fixture, all[2], "succeeded", None).await;
    end(&mut fixture, all[3], "dead_letter", Some("budget_spent")).await;
    rearm(&mut fixture, all[3]).await;
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let rows = list_deliveries(&mut admin, &filter()).await.unwrap();
    let ids: Vec<DeliveryId> = rows.iter().map(|row| row.delivery.delivery_id).collect();
    assert_eq!(ids, all);
    let states: Vec<(&str, i32)> = rows
        .iter()
        .map(|row| (row.delivery.state.as_str(), row.delivery.round))
        .collect();
    let expected = [
        ("pending", 1),
        ("dead_letter", 1),
        ("succeeded", 1),
        ("pending", 2),
        ("pending", 1),
        ("pending", 1),
    ];
    assert_eq!(states, expected);
    assert_eq!(rows[0].event_type.as_deref(), Some("invoice.paid"));
    assert_eq!(rows[0].source.as_deref(), Some("stripe-main"));

    let page = DeliveryFilter {
        before: Some(all[1]),
        limit: 2,
        ..filter()
    };
    assert_eq!(listed(&mut admin, &page).await, all[2..4]);
    let of_state = DeliveryFilter {
        states: vec![StateName::DeadLetter, StateName::Succeeded],
        ..filter()
    };
    assert_eq!(listed(&mut admin, &of_state).await, all[1..3]);
    let of_subscription = DeliveryFilter {
        subscription: Some(SubscriptionId::from_uuid(a)),
        ..filter()
    };
    assert_eq!(listed(&mut admin, &of_subscription).await.len(), 3);
    let shown = show_delivery(&mut admin, dead).await.unwrap().unwrap();
    let of_event = DeliveryFilter {
        event: Some(shown.event_id),
        ..filter()
    };
    assert_eq!(listed(&mut admin, &of_event).await.len(), 2);
    let since = DeliveryFilter {
        since: Some(time::OffsetDateTime::now_utc() + time::Duration::hours(1)),
        ..filter()
    };
    assert!(listed(&mut admin, &since).await.is_empty());
}

#[tokio::test]
async fn one_delivery_is_shown_with_every_round_and_attempt() {
    let mut fixture = fixture().await;
    let subscription = fixture.subscribe("a").await;
    let event = store(&mut fixture, "evt_1").await;
    let delivery = id(event, subscription);
    end(&mut fixture, delivery, "dead_letter", Some("gone")).await;
    rearm(&mut fixture, delivery).await;
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let shown = show_delivery(&mut admin, delivery).await.unwrap().unwrap();
    assert_eq!(shown.subscription.as_deref(), Some("a"));
    assert_eq!(shown.destination_kind.as_deref(), Some("http"));
    let rounds: Vec<_> = shown
        .rounds
        .iter()
        .map(|round| {
            (
                round.round,
                round.state.as_str(),
                round.state_reason.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        rounds,
        [(1, "dead_letter", Some("gone")), (2, "pending", None)]
    );
    assert!(shown.rounds[0].terminal_at.is_some() && shown.rounds[0].next_attempt_at.is_none());
    assert!(shown.rounds[1].terminal_at.is_none() && shown.rounds[1].next_attempt_at.is_some());
    let attempts = attempts_of(&mut admin, delivery).await.unwrap();
    assert_eq!(shown.attempts, attempts);
    assert_eq!(attempts.len(), 1);
    assert_eq!(
        (attempts[0].status_code, attempts[0].latency_ms),
        (Some(503), Some(12))
    );
    assert_eq!(
        attempts[0].response_sha256.as_ref().map(String::len),
        Some(64)
    );

    let nobody = DeliveryId::from_uuid(Uuid::nil());
    assert_eq!(show_delivery(&mut admin, nobody).await.unwrap(), None);
    assert!(attempts_of(&mut admin, nobody).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_new_holds_events_attempts_and_ends_with_whom_they_are_of() {
    let mut fixture = fixture().await;
    let subscription = fixture.subscribe("a").await;
    let event = store(&mut fixture, "evt_1").await;
    let delivery = id(event, subscription);
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let before = recent(&mut admin, LATELY).await.unwrap();
    assert_eq!(before.events.len(), 1);
    assert_eq!(before.events[0].event_id, event);
    assert!(before.attempts.is_empty() && before.ended.is_empty());

    end(&mut fixture, delivery, "dead_letter", Some("gone")).await;
    let after = recent(&mut admin, LATELY).await.unwrap();
    assert_eq!(after.attempts.len(), 1);
    assert_eq!(after.attempts[0].subscription.as_deref(), Some("a"));
    assert_eq!(
        after.attempts[0].error_class.as_deref(),
        Some("server_error")
    );
    assert_eq!(after.ended.len(), 1);
    assert_eq!(
        (after.ended[0].delivery_id, after.ended[0].event_id),
        (delivery, event)
    );
    assert_eq!(after.ended[0].state_reason.as_deref(), Some("gone"));
    assert!(after.read_at >= before.read_at);
}

#[tokio::test]
async fn a_row_that_commits_after_the_time_in_it_is_still_found_by_looking_back() {
    let mut fixture = fixture().await;
    let mut late = fixture.database.connect().await;
    crate::support::run(&mut late, "begin").await;
    let held = event(fixture.source, "evt_late", b"{}");
    ingest(&mut late, &held).await.unwrap();
    let other = store(&mut fixture, "evt_other").await;
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let seen = recent(&mut admin, LATELY).await.unwrap();
    assert_eq!(seen.events.len(), 1);
    assert_eq!(seen.events[0].event_id, other);
    crate::support::run(&mut late, "commit").await;
    let seen = recent(&mut admin, LATELY).await.unwrap();
    assert_eq!(seen.events[0].event_id, held.event_id);
    assert_eq!(seen.events.len(), 2);
}

#[tokio::test]
async fn an_attempt_that_is_followed_by_another_says_when() {
    let mut fixture = fixture().await;
    let subscription = fixture.subscribe("a").await;
    let event = store(&mut fixture, "evt_1").await;
    let delivery = id(event, subscription);
    fixture
        .run(&format!(
            "update hookstead.live_deliveries
             set attempt_count = 1, last_attempt_at = now(), next_attempt_at = now() + interval '5 s'
             where delivery_id = '{delivery}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, outcome, error_class)
             values ('{delivery}', 1, 1, now(), now(), 'retry', 'timeout')"
        ))
        .await;
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let seen = recent(&mut admin, LATELY).await.unwrap();
    assert_eq!(seen.attempts.len(), 1);
    assert!(seen.attempts[0].next_attempt_at.is_some());
    assert_eq!(seen.attempts[0].subscription.as_deref(), Some("a"));
    assert!(seen.ended.is_empty());
}
