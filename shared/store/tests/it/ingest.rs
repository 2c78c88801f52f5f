//! One statement, one round trip, one event.

use hookstead_domain::{DeliveryId, SubscriptionId};
use hookstead_store::{Ingested, first_event_id, ingest};
use hookstead_testkit::FaultProxy;
use sqlx::{Connection, PgConnection};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::support::{add_source, event, event_id_at, fixture, stored_for};

#[tokio::test]
async fn an_event_is_stored_with_its_key_and_its_deliveries() {
    let mut fixture = fixture().await;
    let subscription = fixture.subscribe("orders").await;
    let mut receiver = fixture.receiver().await;
    let new = event(fixture.source, "evt_1", br#"{ "b":1, "a":2.0 }"#);
    let outcome = ingest(&mut receiver, &new).await.unwrap();
    assert_eq!(stored_for(&outcome), Some(1));
    assert_eq!(fixture.counts().await, (1, 1, 1));

    let (delivery_id, state, round, budget, attempts, due_at_receipt, policy): (
        Uuid,
        String,
        i32,
        i32,
        i32,
        bool,
        serde_json::Value,
    ) = sqlx::query_as(
        "select delivery_id, state, round, attempt_budget, attempt_count,
                next_attempt_at = received_at and d.created_at = received_at,
                coalesce(policy, hookstead.default_retry_policy())
         from hookstead.live_deliveries d join hookstead.events using (event_id)",
    )
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap();
    let subscription = SubscriptionId::from_uuid(subscription);
    assert_eq!(
        delivery_id,
        DeliveryId::derive(new.event_id, subscription).as_uuid()
    );
    assert_eq!(
        (state.as_str(), round, budget, attempts),
        ("pending", 1, 10, 0)
    );
    assert!(due_at_receipt);
    assert_eq!(policy["schedule_s"][8], 86400);
}

#[tokio::test]
async fn sto_06_the_same_delivery_again_writes_nothing_and_finds_the_first_id() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let mut receiver = fixture.receiver().await;
    let first = event(fixture.source, "evt_1", b"{}");
    ingest(&mut receiver, &first).await.unwrap();
    let again = event(fixture.source, "evt_1", b"{}");
    assert_eq!(
        ingest(&mut receiver, &again).await.unwrap(),
        Ingested::Duplicate
    );
    assert_eq!(fixture.counts().await, (1, 1, 1));
    let found = first_event_id(&mut receiver, fixture.source, "evt_1")
        .await
        .unwrap();
    assert_eq!(found, Some(first.event_id));
    let unknown = first_event_id(&mut receiver, fixture.source, "evt_2")
        .await
        .unwrap();
    assert_eq!(unknown, None);
}

#[tokio::test]
async fn sto_05_fifty_at_once_from_fifty_connections_are_one_event() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let source = fixture.source;
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut receiver = fixture.receiver().await;
        racers.spawn(async move {
            let new = event(source, "evt_1", b"{\"id\":\"evt_1\"}");
            ingest(&mut receiver, &new).await.unwrap()
        });
    }
    let outcomes = racers.join_all().await;
    let stored = outcomes
        .iter()
        .filter(|outcome| **outcome != Ingested::Duplicate)
        .count();
    assert_eq!((outcomes.len(), stored), (50, 1));
    assert_eq!(fixture.counts().await, (1, 1, 1));
}

#[tokio::test]
async fn sto_07_the_same_id_at_four_sources_is_four_events() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let mut sources = vec![fixture.source];
    for name in ["second", "other-tenant", "other-provider"] {
        sources.push(add_source(&mut fixture.admin, name).await);
    }
    for source in &sources {
        let outcome = ingest(&mut receiver, &event(*source, "evt_1", b"{}"))
            .await
            .unwrap();
        assert_eq!(stored_for(&outcome), Some(0));
    }
    assert_eq!(fixture.counts().await, (4, 4, 0));
    let mut found = Vec::new();
    for source in sources {
        found.push(
            first_event_id(&mut receiver, source, "evt_1")
                .await
                .unwrap()
                .unwrap(),
        );
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 4, "a key is looked up within its source alone");
}

#[tokio::test]
async fn sto_08_a_blank_id_is_refused_and_never_swallows_another_event() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    for blank in ["", " ", "   ", "\t", " \r\n "] {
        let error = ingest(&mut receiver, &event(fixture.source, blank, b"{}"))
            .await
            .unwrap_err();
        assert_eq!(
            error.constraint(),
            Some("event_keys_external_event_id_shape"),
            "{blank:?}"
        );
        assert!(!error.is_transient());
    }
    assert_eq!(fixture.counts().await, (0, 0, 0));
}

#[tokio::test]
async fn sto_10_a_duplicate_days_later_is_still_a_duplicate() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let now = OffsetDateTime::now_utc();
    // The first arrives at the start; the clock then moves ahead by 29 and 71 hours.
    for (hours, expected) in [
        (
            0,
            Ingested::Stored {
                deliveries: Vec::new(),
            },
        ),
        (29, Ingested::Duplicate),
        (71, Ingested::Duplicate),
    ] {
        let then = now + Duration::hours(hours);
        let mut new = event(fixture.source, "evt_1", b"{}");
        new.event_id = event_id_at(then);
        new.received_at = then;
        assert_eq!(
            ingest(&mut receiver, &new).await.unwrap(),
            expected,
            "after {hours} h"
        );
    }
    assert_eq!(fixture.counts().await, (1, 1, 0));
}

#[tokio::test]
async fn sto_12_instants_do_not_depend_on_the_sessions_time_zone() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let at = OffsetDateTime::now_utc()
        .replace_nanosecond(123_456_000)
        .unwrap();
    for zone in ["UTC", "America/New_York", "Asia/Tokyo"] {
        let mut receiver = fixture.receiver().await;
        crate::support::run(&mut receiver, &format!("set timezone = '{zone}'")).await;
        let mut new = event(fixture.source, zone, b"{}");
        new.received_at = at;
        new.occurred_at = Some(at - Duration::hours(1));
        ingest(&mut receiver, &new).await.unwrap();
    }
    let rows: Vec<(
        OffsetDateTime,
        OffsetDateTime,
        OffsetDateTime,
        OffsetDateTime,
    )> = sqlx::query_as(
        "select received_at, occurred_at, next_attempt_at, d.created_at
             from hookstead.events join hookstead.live_deliveries d using (event_id)",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!(rows, vec![(at, at - Duration::hours(1), at, at); 3]);
}

#[tokio::test]
async fn sto_12_defaults_are_instants_in_every_time_zone() {
    let mut fixture = fixture().await;
    for zone in ["UTC", "America/New_York", "Asia/Tokyo"] {
        let sql = format!("set timezone = '{zone}'");
        fixture.run(&sql).await;
        let name = format!("source-{}", zone.len());
        add_source(&mut fixture.admin, &name).await;
    }
    let spread: f64 = sqlx::query_scalar(
        "select extract(epoch from max(created_at) - min(created_at))::float8
         from hookstead.sources where name like 'source-%'",
    )
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap();
    assert!(spread < 60.0, "defaults differ by {spread} s");
}

#[tokio::test]
async fn an_ingest_is_one_round_trip_once_the_statement_is_prepared() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let proxy = FaultProxy::start(&fixture.database.url_as("hookstead_receiver")).await;
    let mut receiver = PgConnection::connect(&proxy.url()).await.unwrap();
    ingest(&mut receiver, &event(fixture.source, "evt_0", b"{}"))
        .await
        .unwrap();
    let before = proxy.round_trips();
    for n in 1..=10 {
        let key = format!("evt_{n}");
        ingest(&mut receiver, &event(fixture.source, &key, b"{}"))
            .await
            .unwrap();
    }
    assert_eq!(proxy.round_trips() - before, 10);
}

#[tokio::test]
async fn raw_bytes_and_metadata_come_back_as_they_went_in() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let body = b"{ \"b\":1, \"a\":2.0, \"u\":\"\\u00e9\", \"s\":\"a\\/b\" }";
    let headers = serde_json::json!([["X-Event", "a"], ["x-event", "b"]]);
    let mut new = event(fixture.source, "evt_1", body);
    new.headers = &headers;
    new.tenant = Some("acme");
    new.idempotency_key = Some("order-1");
    ingest(&mut receiver, &new).await.unwrap();
    let (raw, stored_headers, tenant, key): (Vec<u8>, serde_json::Value, String, String) =
        sqlx::query_as("select raw_body, headers, tenant, idempotency_key from hookstead.events")
            .fetch_one(&mut fixture.admin)
            .await
            .unwrap();
    assert_eq!(raw, body);
    assert_eq!(stored_headers, headers);
    assert_eq!((tenant.as_str(), key.as_str()), ("acme", "order-1"));
}
