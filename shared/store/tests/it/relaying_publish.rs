//! Publishing, from plain SQL in an application's own transaction.

use hookstead_store::StoreError;
use hookstead_store::relaying::{PublishRefusal, PublishRequest, publish};
use hookstead_testkit::role;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::relaying_support::{Relaying, relaying};
use crate::support::run;

const ERRORS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md"));
const MANUAL: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/outbox.md"));

#[tokio::test]
async fn a_transaction_that_rolls_back_sends_nothing_and_one_that_commits_sends_once() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    relaying
        .fixture
        .run(
            "create schema shop; grant usage on schema shop to public;
             create table shop.orders (id int); grant all on shop.orders to public",
        )
        .await;
    for (id, end) in [(1, "rollback"), (2, "commit")] {
        let sql = format!(
            "begin; insert into shop.orders values ({id});
             select hookstead.publish('order.paid', '{{\"id\": {id}}}'); {end}"
        );
        run(&mut relaying.publisher, &sql).await;
    }
    assert_eq!(relaying.expand().await.events, 1);
    assert_eq!(relaying.expand().await.rows(), 0);
    assert_eq!(relaying.counts().await, (0, 1, 1));
    let body = "select convert_from(raw_body, 'UTF8') from hookstead.events";
    assert_eq!(relaying.value(body).await, r#"{"id": 2}"#);
    assert_eq!(
        relaying.value("select id::text from shop.orders").await,
        "2"
    );
}

/// What the server says of a call, as code and as SQLSTATE.
async fn refused(publisher: &mut PgConnection, call: &str) -> (String, StoreError) {
    let sql = format!("select hookstead.{call}");
    let error = sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(publisher)
        .await
        .unwrap_err();
    let message = error.as_database_error().unwrap().message().to_owned();
    let code = message.split(':').next().unwrap().to_owned();
    (code, StoreError::from(error))
}

async fn sources(relaying: &mut Relaying) {
    relaying
        .fixture
        .run(
            "insert into hookstead.sources (name, kind, disabled_at) values ('off', 'outbox', now());
             insert into hookstead.sources (name, kind, allowed_event_types, tenant,
                 schema_version, retired_schema_versions)
             values ('strict', 'outbox', '{order.*}', 'acme', '3', '{1,2}')",
        )
        .await;
}

/// Tries each call and expects the refusal beside it, and nothing in the outbox.
async fn expect_refusals(calls: &[(PublishRefusal, &str)]) {
    let mut relaying = relaying().await;
    sources(&mut relaying).await;
    for (expected, call) in calls {
        let (code, error) = refused(&mut relaying.publisher, call).await;
        assert_eq!(code, expected.code(), "{call}");
        assert_eq!(PublishRefusal::of(&error), Some(*expected), "{call}");
    }
    assert_eq!(relaying.fixture.count("outbox").await, 0);
}

#[tokio::test]
async fn what_a_source_does_not_take_is_refused_with_a_code_and_leaves_nothing_behind() {
    use PublishRefusal::*;
    expect_refusals(&[
        (UnknownSource, "publish('a', '{}', source => 'nowhere')"),
        (UnknownSource, "publish('a', '{}', source => null)"),
        (SourceDisabled, "publish('a', '{}', source => 'off')"),
        (NotAnOutboxSource, "publish('a', '{}', 'stripe-main')"),
        (ReservedSource, "publish('a', '{}', source => 'hookstead')"),
        (EventTypeNotAllowed, "publish('user.new', '{}', 'strict')"),
        (RetiredSchemaVersion, OLD_VERSION),
        (
            TenantNotAllowed,
            "publish('order.a', '{}', 'strict', tenant => 'x')",
        ),
        (BodyTooLarge, ONE_BYTE_TOO_MANY),
    ])
    .await;
}

const OLD_VERSION: &str = "publish('order.a', '{}', 'strict', schema_version => '2')";
const ONE_BYTE_TOO_MANY: &str =
    "publish_raw('a', convert_to(repeat('x', 4194305), 'UTF8'), 'text/plain')";

#[tokio::test]
async fn an_argument_that_is_missing_or_out_of_range_is_refused_and_leaves_nothing_behind() {
    let calls = [
        "publish(null, '{}')",
        "publish(E' \\t', '{}')",
        "publish(repeat('x', 257), '{}')",
        "publish('a', null)",
        "publish_raw('a', null, 'text/plain')",
        "publish_raw('a', 'x', null)",
        "publish_raw('a', 'x', '')",
        "publish('a', '{}', aggregate_type => '')",
        "publish('a', '{}', aggregate_type => null)",
        "publish('a', '{}', aggregate_id => repeat('x', 513))",
        "publish('a', '{}', tenant => '')",
        "publish('a', '{}', idempotency_key => ' ')",
        "publish('a', '{}', idempotency_key => repeat('x', 513))",
        "publish('a', '{}', occurred_at => 'infinity')",
        "publish('a', '{}', occurred_at => '0044-03-15 BC')",
        "publish('a', '{}', schema_version => '')",
    ];
    expect_refusals(&calls.map(|call| (PublishRefusal::InvalidArgument, call))).await;
}

#[test]
fn every_refusal_is_in_both_tables_with_its_state() {
    for refusal in PublishRefusal::ALL {
        let row = format!("| `{}` | `{}` |", refusal.sqlstate(), refusal.code());
        assert!(ERRORS.contains(&row), "docs/errors.md lacks {row}");
        assert!(MANUAL.contains(&row), "docs/outbox.md lacks {row}");
    }
}

#[tokio::test]
async fn an_application_goes_on_after_a_refusal_behind_a_savepoint() {
    let mut relaying = relaying().await;
    run(&mut relaying.publisher, "begin; savepoint before").await;
    refused(&mut relaying.publisher, "publish('', '{}')").await;
    run(
        &mut relaying.publisher,
        "rollback to before; select hookstead.publish('a', '{}'); commit",
    )
    .await;
    assert_eq!(relaying.fixture.count("outbox").await, 1);
}

#[tokio::test]
async fn what_is_left_out_is_the_sources_and_the_moments() {
    let mut relaying = relaying().await;
    sources(&mut relaying).await;
    relaying
        .publish("'order.a', '{}', source => 'strict', occurred_at => null")
        .await;
    let sql = "select concat_ws(' ', tenant, schema_version, content_type, aggregate_type,
                   aggregate_id = outbox_id::text, occurred_at = created_at, expand_at = created_at,
                   idempotency_key is null)
               from hookstead.outbox";
    let expected = "acme 3 application/json event t t t t";
    assert_eq!(relaying.value(sql).await, expected);
}

#[tokio::test]
async fn four_mebibytes_pass() {
    let mut relaying = relaying().await;
    let call =
        "select hookstead.publish_raw('a', convert_to(repeat('x', 4194304), 'UTF8'), 'text/plain')";
    run(&mut relaying.publisher, call).await;
    assert_eq!(relaying.expand().await.events, 1);
}

#[tokio::test]
async fn a_user_who_is_in_the_publishers_role_publishes_and_reads_nothing() {
    let mut relaying = relaying().await;
    let user = format!("shop_of_{}", relaying.fixture.database.name());
    let sql = format!("create role {user} in role hookstead_publisher; set role {user}");
    relaying.fixture.run(&sql).await;
    relaying
        .fixture
        .run("select hookstead.publish('a', '{}')")
        .await;
    let read = sqlx::query("select 1 from hookstead.outbox")
        .execute(&mut relaying.fixture.admin)
        .await;
    let sql = format!("reset role; drop role {user}");
    relaying.fixture.run(&sql).await;
    assert_eq!(
        StoreError::from(read.unwrap_err()).sqlstate(),
        Some("42501")
    );
    assert_eq!(relaying.fixture.count("outbox").await, 1);
}

#[tokio::test]
async fn publishing_notifies_nobody() {
    let mut relaying = relaying().await;
    let sql = "select string_agg(proname, ' ') from pg_proc
               where pronamespace = 'hookstead'::regnamespace and prosrc ilike '%notify%'";
    assert_eq!(relaying.value(sql).await, "none");
    assert_eq!(
        relaying
            .value("select string_agg(tgname, ' ') from pg_trigger where not tgisinternal")
            .await,
        "none"
    );
}

#[tokio::test]
async fn a_request_that_is_repeated_becomes_one_event() {
    let mut relaying = relaying().await;
    let mut publisher = relaying.fixture.database.connect_as(role::PUBLISHER).await;
    let request = PublishRequest {
        event_type: "order.paid",
        body: b"{\"id\": 1}",
        content_type: "application/json",
        source: "app",
        aggregate: Some(("order", "1")),
        tenant: None,
        idempotency_key: "order-1-paid",
        occurred_at: None,
        cause_event_id: None,
        schema_version: None,
    };
    publish(&mut publisher, &request).await.unwrap();
    publish(&mut publisher, &request).await.unwrap();
    let expanded = relaying.expand().await;
    assert_eq!((expanded.events, expanded.duplicates), (1, 1));
    let sql = "select concat_ws(' ', external_event_id, idempotency_key) from hookstead.events";
    assert_eq!(relaying.value(sql).await, "order-1-paid order-1-paid");
    assert!(
        !format!("{request:?}").contains("id\\\""),
        "no body is printed"
    );
}
