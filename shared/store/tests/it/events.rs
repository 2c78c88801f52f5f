//! Reading events back.

use hookstead_domain::EventId;
use hookstead_store::{EventFilter, ingest, list_events, pull_event, show_event};
use hookstead_testkit::role;
use time::Duration;

use crate::support::{add_source, event, fixture};

fn filter(limit: u16) -> EventFilter {
    EventFilter {
        limit,
        ..EventFilter::default()
    }
}

#[tokio::test]
async fn a_list_is_newest_first_in_pages_and_filtered() {
    let mut fixture = fixture().await;
    let other = add_source(&mut fixture.admin, "other").await;
    let mut receiver = fixture.receiver().await;
    let mut ids = Vec::new();
    let mut last_received = None;
    for n in 0..5 {
        let key = format!("evt_{n}");
        let source = if n % 2 == 0 { fixture.source } else { other };
        let mut new = event(source, &key, b"{}");
        new.event_type = if n < 3 {
            "invoice.paid"
        } else {
            "charge.failed"
        };
        ingest(&mut receiver, &new).await.unwrap();
        ids.push(new.event_id);
        last_received = Some(new.received_at);
    }
    ids.sort();
    ids.reverse();
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let all = list_events(&mut admin, &filter(100)).await.unwrap();
    let listed: Vec<EventId> = all.iter().map(|event| event.event_id).collect();
    assert_eq!(listed, ids);
    let page = EventFilter {
        before: Some(ids[1]),
        ..filter(2)
    };
    let page: Vec<EventId> = list_events(&mut admin, &page)
        .await
        .unwrap()
        .iter()
        .map(|event| event.event_id)
        .collect();
    assert_eq!(page, ids[2..4]);

    let of_source = EventFilter {
        source: Some("other".to_owned()),
        ..filter(100)
    };
    let of_source = list_events(&mut admin, &of_source).await.unwrap();
    assert_eq!(of_source.len(), 2);
    assert!(
        of_source
            .iter()
            .all(|event| event.source.as_deref() == Some("other"))
    );
    let of_type = EventFilter {
        event_type: Some("invoice.*".to_owned()),
        ..filter(100)
    };
    assert_eq!(list_events(&mut admin, &of_type).await.unwrap().len(), 3);
    let since = EventFilter {
        since: last_received,
        ..filter(100)
    };
    assert_eq!(list_events(&mut admin, &since).await.unwrap().len(), 1);
    let later = last_received.map(|at| at + Duration::hours(1));
    let none = EventFilter {
        since: later,
        ..filter(100)
    };
    assert_eq!(list_events(&mut admin, &none).await.unwrap(), []);
}

#[tokio::test]
async fn an_event_shows_its_headers_its_hash_and_its_deliveries() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    fixture.subscribe("audit").await;
    let mut receiver = fixture.receiver().await;
    let headers = serde_json::json!({ "x-event": ["a", "b"] });
    let mut new = event(fixture.source, "evt_1", b"{\"x\":1}");
    new.headers = &headers;
    ingest(&mut receiver, &new).await.unwrap();
    // A neighbour of the same millisecond stays out.
    ingest(&mut receiver, &event(fixture.source, "evt_2", b"{}"))
        .await
        .unwrap();

    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let shown = show_event(&mut admin, new.event_id).await.unwrap().unwrap();
    assert_eq!(shown.headers, headers);
    assert_eq!(shown.summary.source.as_deref(), Some("stripe-main"));
    assert_eq!(shown.summary.body_bytes, 7);
    assert_eq!(
        shown.body_sha256,
        "5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22"
    );
    let names: Vec<_> = shown
        .deliveries
        .iter()
        .map(|delivery| delivery.subscription.as_deref())
        .collect();
    assert_eq!(names, [Some("audit"), Some("orders")]);
    assert!(
        shown
            .deliveries
            .iter()
            .all(|delivery| delivery.state == "pending")
    );

    let unknown = EventId::from_uuid(uuid::Uuid::nil());
    assert_eq!(show_event(&mut admin, unknown).await.unwrap(), None);
}

#[tokio::test]
async fn a_finished_delivery_is_shown_once_with_its_last_state() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let mut receiver = fixture.receiver().await;
    let new = event(fixture.source, "evt_1", b"{}");
    ingest(&mut receiver, &new).await.unwrap();
    let archive = "insert into hookstead.done_deliveries (
            delivery_id, event_id, subscription_id, created_at, round, attempt_count,
            attempt_budget, state, state_reason, policy)
        select delivery_id, event_id, subscription_id, created_at, round, 0, attempt_budget,
            'cancelled', 'subscription_disabled', policy
        from hookstead.live_deliveries";
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    // Archived and re-armed: the live round counts.
    fixture.run(archive).await;
    fixture
        .run("update hookstead.live_deliveries set round = 2")
        .await;
    let shown = show_event(&mut admin, new.event_id).await.unwrap().unwrap();
    let states: Vec<_> = shown
        .deliveries
        .iter()
        .map(|d| (d.round, d.state.as_str()))
        .collect();
    assert_eq!(states, [(2, "pending")]);
    // Archived again and nothing live: the last archived round counts.
    fixture.run(archive).await;
    fixture.run("delete from hookstead.live_deliveries").await;
    let shown = show_event(&mut admin, new.event_id).await.unwrap().unwrap();
    let states: Vec<_> = shown
        .deliveries
        .iter()
        .map(|d| (d.round, d.state.as_str()))
        .collect();
    assert_eq!(states, [(2, "cancelled")]);
}

#[tokio::test]
async fn a_pulled_event_is_the_exact_bytes() {
    let fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let body: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let new = event(fixture.source, "evt_1", &body);
    ingest(&mut receiver, &new).await.unwrap();
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    assert_eq!(
        pull_event(&mut admin, new.event_id).await.unwrap(),
        Some(body)
    );
    let unknown = EventId::from_uuid(uuid::Uuid::nil());
    assert_eq!(pull_event(&mut admin, unknown).await.unwrap(), None);
}
