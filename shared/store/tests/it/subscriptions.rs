//! Subscriptions one by one: adding, secrets, switching off and on.

use hookstead_domain::SubscriptionId;
use hookstead_store::{
    Action, Added, Desired, DesiredSource, DesiredSubscription, NewSecret, SubscriptionRecord,
    add_subscription, apply, apply_with_secrets, sealed_secrets, subscription_by_name,
    subscriptions_without_secret, switch_subscription_off, switch_subscription_on,
};
use hookstead_testkit::{TestDatabase, role};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::support::{event, fixture, run};

fn source(name: &str) -> DesiredSource {
    serde_json::from_value(json!({ "name": name, "kind": "stripe" })).unwrap()
}

fn subscription(name: &str) -> DesiredSubscription {
    let destination = json!({ "kind": "http", "url": "https://h.example/" });
    serde_json::from_value(json!({ "name": name, "destination": destination })).unwrap()
}

fn desired(names: &[&str]) -> Desired {
    Desired {
        sources: vec![source("stripe-main")],
        subscriptions: names.iter().map(|name| subscription(name)).collect(),
    }
}

fn secret(name: &str, id: SubscriptionId, sealed: &[u8]) -> NewSecret {
    NewSecret {
        name: name.to_owned(),
        subscription_id: id,
        sealed: sealed.to_vec(),
        key_id: "local-1".to_owned(),
    }
}

fn id(number: u128) -> SubscriptionId {
    SubscriptionId::from_uuid(Uuid::from_u128(number))
}

async fn admin() -> (TestDatabase, PgConnection) {
    let database = hookstead_testkit::database().await;
    let admin = database.connect_as(role::ADMIN).await;
    (database, admin)
}

async fn named(connection: &mut PgConnection, name: &str) -> SubscriptionRecord {
    subscription_by_name(connection, name)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_new_subscription_gets_its_secret_in_the_transaction_that_makes_it() {
    let (_database, mut admin) = admin().await;
    let desired = desired(&["a"]);
    let names = ["a".to_owned()];
    let missing = subscriptions_without_secret(&mut admin, &names)
        .await
        .unwrap();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].subscription_id, None);
    let offered = [secret("a", id(1), b"sealed")];
    let applied = apply_with_secrets(&mut admin, &desired, &offered, "me")
        .await
        .unwrap();
    assert_eq!(applied.secrets_issued, ["a"]);
    let record = named(&mut admin, "a").await;
    assert!(record.has_secret);
    assert_eq!(record.subscription_id, id(1));
    let stored = sealed_secrets(&mut admin, id(1)).await.unwrap();
    assert_eq!(
        stored.current,
        Some((b"sealed".to_vec(), "local-1".to_owned()))
    );
    assert_eq!(stored.previous, None);
    let missing = subscriptions_without_secret(&mut admin, &names)
        .await
        .unwrap();
    assert!(missing.is_empty());
}

#[tokio::test]
async fn a_secret_that_is_there_is_never_replaced_by_applying() {
    let (_database, mut admin) = admin().await;
    let desired = desired(&["a"]);
    apply(&mut admin, &desired, "me").await.unwrap();
    let record = named(&mut admin, "a").await;
    assert!(!record.has_secret);
    // Sealed for another id it could never be opened.
    let foreign = [secret("a", id(7), b"foreign")];
    let applied = apply_with_secrets(&mut admin, &desired, &foreign, "me")
        .await
        .unwrap();
    assert!(applied.secrets_issued.is_empty());
    let first = [secret("a", record.subscription_id, b"first")];
    let second = [secret("a", record.subscription_id, b"second")];
    let applied = apply_with_secrets(&mut admin, &desired, &first, "me")
        .await
        .unwrap();
    assert_eq!(applied.secrets_issued, ["a"]);
    let applied = apply_with_secrets(&mut admin, &desired, &second, "me")
        .await
        .unwrap();
    assert!(applied.secrets_issued.is_empty());
    let stored = sealed_secrets(&mut admin, record.subscription_id)
        .await
        .unwrap();
    assert_eq!(stored.current.unwrap().0, b"first");
}

#[tokio::test]
async fn two_that_apply_at_once_issue_one_secret() {
    let (database, mut admin) = admin().await;
    let mut other = database.connect_as(role::ADMIN).await;
    let desired = desired(&["a"]);
    let (one, two) = ([secret("a", id(1), b"one")], [secret("a", id(2), b"two")]);
    let (first, second) = tokio::join!(
        apply_with_secrets(&mut admin, &desired, &one, "me"),
        apply_with_secrets(&mut other, &desired, &two, "me"),
    );
    let issued = first.unwrap().secrets_issued.len() + second.unwrap().secrets_issued.len();
    assert_eq!(issued, 1);
    let record = named(&mut admin, "a").await;
    let stored = sealed_secrets(&mut admin, record.subscription_id)
        .await
        .unwrap();
    let sealed = if record.subscription_id == id(1) {
        b"one"
    } else {
        b"two"
    };
    assert_eq!(stored.current.unwrap().0, sealed);
}

#[tokio::test]
async fn what_a_command_added_stays_until_the_manifest_names_it() {
    let (_database, mut admin) = admin().await;
    apply(&mut admin, &desired(&["a"]), "me").await.unwrap();
    let extra = secret("b", id(2), b"sealed");
    let added = add_subscription(&mut admin, &subscription("b"), Some(&extra), "me").await;
    assert_eq!(added.unwrap(), Added::Yes(id(2)));
    assert_eq!(named(&mut admin, "b").await.managed_by, "command");
    let taken = add_subscription(&mut admin, &subscription("a"), None, "me").await;
    assert_eq!(taken.unwrap(), Added::NameTaken);
    let mut of_nobody = subscription("c");
    of_nobody.source = Some("nobody".parse().unwrap());
    let refused = add_subscription(&mut admin, &of_nobody, None, "me").await;
    assert_eq!(refused.unwrap(), Added::UnknownSource);
    assert!(
        subscription_by_name(&mut admin, "c")
            .await
            .unwrap()
            .is_none()
    );

    let plan = apply(&mut admin, &desired(&["a"]), "me").await.unwrap();
    assert!(plan.changes.iter().all(|change| change.name != "b"));
    assert!(named(&mut admin, "b").await.disabled_at.is_none());

    let plan = apply(&mut admin, &desired(&["a", "b"]), "me")
        .await
        .unwrap();
    let change = plan
        .changes
        .iter()
        .find(|change| change.name == "b")
        .unwrap();
    let fields = vec!["managed_by"];
    assert_eq!(change.action, Action::Update { fields });
    let record = named(&mut admin, "b").await;
    assert_eq!(
        (record.managed_by.as_str(), record.has_secret),
        ("manifest", true)
    );
    apply(&mut admin, &desired(&["a"]), "me").await.unwrap();
    assert!(named(&mut admin, "b").await.disabled_at.is_some());
}

#[tokio::test]
async fn switching_off_and_on_is_written_down_and_brings_back_what_was_cancelled() {
    let mut fixture = fixture().await;
    fixture.subscribe("a").await;
    let mut receiver = fixture.receiver().await;
    let new = event(fixture.source, "evt_1", b"{}");
    hookstead_store::ingest(&mut receiver, &new).await.unwrap();
    let mut admin = fixture.database.connect_as(role::ADMIN).await;
    let record = named(&mut admin, "a").await;
    assert!(
        switch_subscription_off(&mut admin, &record, "maintenance", "me")
            .await
            .unwrap()
    );
    assert!(
        !switch_subscription_off(&mut admin, &record, "maintenance", "me")
            .await
            .unwrap()
    );
    let off = named(&mut admin, "a").await;
    assert_eq!(off.disabled_reason.as_deref(), Some("maintenance"));
    // As the relay cancels.
    run(
        &mut fixture.admin,
        "insert into hookstead.done_deliveries (
             delivery_id, event_id, subscription_id, created_at, round, attempt_count,
             attempt_budget, state, state_reason)
         select delivery_id, event_id, subscription_id, created_at, round, attempt_count,
                attempt_budget, 'cancelled', 'subscription_disabled'
         from hookstead.live_deliveries;
         delete from hookstead.live_deliveries",
    )
    .await;
    let rearmed = switch_subscription_on(&mut admin, &record, true, "me")
        .await
        .unwrap();
    assert_eq!(rearmed, 1);
    assert_eq!(fixture.count("live_deliveries").await, 1);
    assert!(named(&mut admin, "a").await.disabled_at.is_none());
    let actions: Vec<String> = sqlx::query_scalar(
        "select action from hookstead.operator_actions where target_id = 'a' order by at",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!(actions, ["subscription.disable", "subscription.enable"]);
}

#[tokio::test]
async fn nothing_of_a_secret_or_a_destination_is_printed() {
    let (_database, mut admin) = admin().await;
    let mut hidden = subscription("a");
    hidden.destination = json!({
        "kind": "http", "url": "https://h.example/CANARY", "headers": { "x": "CANARY" },
    });
    let offered = secret("a", id(1), b"CANARY");
    add_subscription(&mut admin, &hidden, Some(&offered), "me")
        .await
        .unwrap();
    let record = named(&mut admin, "a").await;
    let stored = sealed_secrets(&mut admin, id(1)).await.unwrap();
    let printed = format!("{record:?} {stored:?} {offered:?}");
    assert!(
        !printed.contains("CANARY") && !printed.contains("67, 65"),
        "{printed}"
    );
    let audit: String =
        sqlx::query_scalar("select string_agg(detail::text, ' ') from hookstead.operator_actions")
            .fetch_one(&mut admin)
            .await
            .unwrap();
    assert!(!audit.contains("CANARY"), "{audit}");
}
