//! Manifests: planned, applied, refused.

use hookstead_store::{
    Action, Desired, StoreError, Subject, apply, enabled_sources, ingest, plan, source_by_name,
};
use hookstead_testkit::role;
use serde_json::json;
use sqlx::PgConnection;

use crate::support::{event, stored_for};

fn desired(value: serde_json::Value) -> Desired {
    serde_json::from_value(value).unwrap()
}

fn both() -> Desired {
    desired(json!({
        "sources": [{
            "name": "stripe-main", "kind": "stripe", "secret_ref": "local/stripe-main",
            "public_url": "https://hooks.example.com/webhooks/stripe-main",
            "tolerance_s": 300, "allowed_event_types": ["invoice.*"], "tenant": "acme",
        }],
        "subscriptions": [{
            "name": "billing", "source": "stripe-main", "event_types": ["invoice.*"],
            "payload_filter": "$.amount>10", "destination": { "kind": "pull" },
        }],
    }))
}

async fn admin(database: &hookstead_testkit::TestDatabase) -> PgConnection {
    database.connect_as(role::ADMIN).await
}

fn actions(plan: &hookstead_store::Plan) -> Vec<(Subject, &str, &Action)> {
    plan.changes
        .iter()
        .map(|c| (c.subject, c.name.as_str(), &c.action))
        .collect()
}

#[tokio::test]
async fn a_manifest_is_planned_applied_and_then_nothing_is_left_to_do() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    let create = [
        (Subject::Source, "stripe-main", &Action::Create),
        (Subject::Subscription, "billing", &Action::Create),
    ];
    let planned = plan(&mut admin, &both()).await.unwrap();
    assert_eq!(actions(&planned), create);
    assert!(!planned.is_empty());
    assert_eq!(
        enabled_sources(&mut admin).await.unwrap(),
        [],
        "a plan writes nothing"
    );

    assert_eq!(apply(&mut admin, &both(), "tester").await.unwrap(), planned);
    let again = apply(&mut admin, &both(), "tester").await.unwrap();
    assert!(again.is_empty(), "{again:?}");
    let source = source_by_name(&mut admin, &"stripe-main".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(source.tolerance_s, Some(300));
    assert_eq!(source.allowed_event_types, ["invoice.*"]);
    assert_eq!(source.tenant.as_deref(), Some("acme"));
    let audited: i64 = sqlx::query_scalar(
        "select count(*) from hookstead.operator_actions where actor = 'tester'",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    assert_eq!(audited, 1, "what changes nothing is not recorded");

    let mut receiver = database.connect_as(role::RECEIVER).await;
    let mut new = event(source.source_id, "evt_1", br#"{"amount":42}"#);
    new.tenant = Some("acme");
    let outcome = ingest(&mut receiver, &new).await.unwrap();
    assert_eq!(stored_for(&outcome), Some(1));
}

#[tokio::test]
async fn an_update_names_the_fields_that_differ() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    apply(&mut admin, &both(), "tester").await.unwrap();
    let mut changed = both();
    changed.sources[0].kind = "github".to_owned();
    changed.sources[0].public_url = None;
    changed.subscriptions[0].payload_filter = Some("$.amount > 11".to_owned());
    changed.subscriptions[0].rate_limit_per_s = Some(5);
    let applied = apply(&mut admin, &changed, "tester").await.unwrap();
    let source = Action::Update {
        fields: vec!["kind", "public_url"],
    };
    let subscription = Action::Update {
        fields: vec!["payload_filter", "rate_limit_per_s"],
    };
    assert_eq!(
        actions(&applied),
        [
            (Subject::Source, "stripe-main", &source),
            (Subject::Subscription, "billing", &subscription),
        ]
    );
    assert!(plan(&mut admin, &changed).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_longer_named_is_disabled_and_comes_back_when_it_is() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    apply(&mut admin, &both(), "tester").await.unwrap();
    let removed = apply(&mut admin, &Desired::default(), "tester")
        .await
        .unwrap();
    assert!(
        removed
            .changes
            .iter()
            .all(|change| change.action == Action::Disable)
    );
    assert_eq!(enabled_sources(&mut admin).await.unwrap(), []);
    let gone = source_by_name(&mut admin, &"stripe-main".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert!(gone.disabled_at.is_some(), "it is kept");
    assert!(
        plan(&mut admin, &Desired::default())
            .await
            .unwrap()
            .is_empty()
    );

    let back = apply(&mut admin, &both(), "tester").await.unwrap();
    let enable = Action::Enable { fields: Vec::new() };
    assert!(
        back.changes.iter().all(|change| change.action == enable),
        "{back:?}"
    );
    assert_eq!(enabled_sources(&mut admin).await.unwrap().len(), 1);
    let same = source_by_name(&mut admin, &"stripe-main".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(same.source_id, gone.source_id);
}

#[tokio::test]
async fn a_subscription_that_was_switched_off_for_cause_stays_off() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    apply(&mut admin, &both(), "tester").await.unwrap();
    sqlx::query(
        "update hookstead.subscriptions set disabled_at = now(), disabled_reason = 'destination_gone'",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let mut changed = both();
    changed.subscriptions[0].rate_limit_per_s = Some(5);
    let applied = apply(&mut admin, &changed, "tester").await.unwrap();
    let stays = Action::StaysDisabled {
        reason: "destination_gone".to_owned(),
        fields: vec!["rate_limit_per_s"],
    };
    assert_eq!(applied.changes[1].action, stays);
    let reason: Option<String> =
        sqlx::query_scalar("select disabled_reason from hookstead.subscriptions")
            .fetch_one(&mut admin)
            .await
            .unwrap();
    assert_eq!(reason.as_deref(), Some("destination_gone"));
    assert!(plan(&mut admin, &changed).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_manifest_that_cannot_be_applied_is_refused_by_a_code_and_writes_nothing() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    let sub = |extra: serde_json::Value| {
        let mut one = json!({ "name": "billing", "destination": { "kind": "pull" } });
        one.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        desired(json!({ "sources": [{ "name": "s", "kind": "stripe" }], "subscriptions": [one] }))
    };
    let twice = json!({ "name": "s", "kind": "stripe" });
    let cases = [
        (
            desired(json!({ "sources": [twice, twice] })),
            "duplicate_name",
        ),
        (sub(json!({ "source": "unknown" })), "unknown_source"),
        (sub(json!({ "payload_filter": "$.a >" })), "invalid_filter"),
        (
            sub(json!({ "payload_filter": "$.a like_regex \"(\"" })),
            "invalid_filter",
        ),
        (sub(json!({ "payload_filter": "" })), "invalid_filter"),
        (
            sub(json!({ "payload_filter": "$.a ? (@ == $limit)" })),
            "invalid_filter",
        ),
        (
            sub(json!({ "retry_policy": { "schedule_s": [1] } })),
            "invalid_retry_policy",
        ),
        (
            sub(json!({ "destination": "https://example.com" })),
            "invalid_value",
        ),
        (sub(json!({ "rate_limit_per_s": 0 })), "invalid_value"),
        (sub(json!({ "tenant": "a\u{0}b" })), "invalid_value"),
    ];
    for (manifest, code) in cases {
        match apply(&mut admin, &manifest, "tester").await {
            Err(StoreError::Manifest(error)) => assert_eq!(error.code, code, "{error}"),
            other => panic!("{code}: {other:?}"),
        }
        assert_eq!(enabled_sources(&mut admin).await.unwrap(), [], "{code}");
    }
}

#[tokio::test]
async fn a_filter_may_hold_what_only_looks_like_a_variable() {
    let database = hookstead_testkit::database().await;
    let mut admin = admin(&database).await;
    for filter in [
        r#"$.a == "$x""#,
        r#"$.a == "costs $" && $.b == "c""#,
        r#"$.a == "\"$" && $."$b" == 1"#,
        "$[*] ? (@ == $.a)",
    ] {
        let mut desired = both();
        desired.subscriptions[0].payload_filter = Some(filter.to_owned());
        assert!(plan(&mut admin, &desired).await.is_ok(), "{filter}");
    }
}

#[tokio::test]
async fn two_that_apply_at_once_take_turns() {
    let database = hookstead_testkit::database().await;
    let (mut one, mut other) = (admin(&database).await, admin(&database).await);
    let manifest = both();
    let (first, second) = tokio::join!(
        apply(&mut one, &manifest, "first"),
        apply(&mut other, &manifest, "second")
    );
    let empty = [first.unwrap(), second.unwrap()]
        .iter()
        .filter(|plan| plan.is_empty())
        .count();
    assert_eq!(empty, 1);
}
