//! Which subscriptions an event is owed to.

use hookstead_store::{Ingested, NewEvent, ingest};

use crate::support::{Fixture, event, fixture};

async fn deliveries(fixture: &Fixture, new: &NewEvent<'_>) -> usize {
    let mut receiver = fixture.receiver().await;
    match ingest(&mut receiver, new).await.unwrap() {
        Ingested::Stored { deliveries } => deliveries.len(),
        Ingested::Duplicate => panic!("the event was stored before"),
    }
}

#[tokio::test]
async fn types_sources_tenants_and_filters_all_have_to_match() {
    let mut fixture = fixture().await;
    let source = format!("'{}'", fixture.source);
    let other = crate::support::add_source(&mut fixture.admin, "other").await;
    let other = format!("'{other}'");
    for (name, column, value) in [
        ("all", "event_types", "'{}'"),
        ("exact", "event_types", "'{invoice.paid}'"),
        ("wildcard", "event_types", "'{charge.*,invoice.*}'"),
        ("this-source", "source_id", source.as_str()),
        ("this-tenant", "tenant", "'acme'"),
        ("filter", "payload_filter", "'$ ? (@.amount > 10)'"),
        ("predicate", "payload_filter", "'$.amount > 10'"),
    ] {
        fixture.subscribe_with(name, column, value).await;
    }
    for (name, column, value) in [
        ("no-other-type", "event_types", "'{charge.*}'"),
        ("no-underscore", "event_types", "'{invoice_paid}'"),
        ("no-percent", "event_types", "'{invoice%}'"),
        ("no-other-source", "source_id", other.as_str()),
        ("no-other-tenant", "tenant", "'umbrella'"),
        ("no-filter", "payload_filter", "'$ ? (@.amount > 100)'"),
        ("no-predicate", "payload_filter", "'$.amount > 100'"),
        ("no-null", "payload_filter", "'$.nothing'"),
        ("no-error", "payload_filter", "'strict $.missing.deeper'"),
        ("no-disabled", "disabled_at", "now()"),
    ] {
        fixture.subscribe_with(name, column, value).await;
    }
    let mut new = event(fixture.source, "evt_1", br#"{"amount":42,"nothing":null}"#);
    new.tenant = Some("acme");
    assert_eq!(deliveries(&fixture, &new).await, 7);
    let names: Vec<String> = sqlx::query_scalar(
        "select name from hookstead.live_deliveries
         join hookstead.subscriptions using (subscription_id) order by name",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    let expected = [
        "all",
        "exact",
        "filter",
        "predicate",
        "this-source",
        "this-tenant",
        "wildcard",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn an_event_of_no_tenant_reaches_no_tenants_subscription() {
    let mut fixture = fixture().await;
    fixture.subscribe_with("acme", "tenant", "'acme'").await;
    fixture.subscribe("everyone").await;
    let new = event(fixture.source, "evt_1", b"{}");
    assert_eq!(deliveries(&fixture, &new).await, 1);
}

#[tokio::test]
async fn an_unparsed_body_matches_subscriptions_without_a_filter_alone() {
    let mut fixture = fixture().await;
    fixture.subscribe("all").await;
    fixture
        .subscribe_with("filtered", "payload_filter", "'$'")
        .await;
    let new = event(fixture.source, "evt_1", b"not json");
    assert_eq!(deliveries(&fixture, &new).await, 1);
}

#[tokio::test]
async fn the_cost_of_a_filter_is_kept_with_its_delivery() {
    let mut fixture = fixture().await;
    fixture.subscribe("free").await;
    fixture
        .subscribe_with("paid", "payload_filter", "'$.** ? (@ == 7)'")
        .await;
    let body = format!("[{}7]", "1,".repeat(20_000));
    let new = event(fixture.source, "evt_1", body.as_bytes());
    assert_eq!(deliveries(&fixture, &new).await, 2);
    let costs: Vec<i32> = sqlx::query_scalar(
        "select filter_match_us from hookstead.live_deliveries order by filter_match_us",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!(costs[0], 0);
    assert!(costs[1] > 0);
}

#[tokio::test]
async fn the_policy_of_a_delivery_is_the_one_of_its_first_moment() {
    let mut fixture = fixture().await;
    let policy = r#"'{"schedule_s": [1, 2], "jitter": 0, "timeout_ms": 1000,
                      "max_age_s": 60, "give_up_after_identical": null}'"#;
    fixture
        .subscribe_with("short", "retry_policy", policy)
        .await;
    assert_eq!(
        deliveries(&fixture, &event(fixture.source, "evt_1", b"{}")).await,
        1
    );
    fixture
        .run("update hookstead.subscriptions set retry_policy = hookstead.default_retry_policy()")
        .await;
    let (budget, schedule): (i32, String) = sqlx::query_as(
        "select attempt_budget, policy ->> 'schedule_s' from hookstead.live_deliveries",
    )
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!((budget, schedule.as_str()), (3, "[1, 2]"));
}
