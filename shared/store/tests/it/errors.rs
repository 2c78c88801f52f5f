//! Errors say what went wrong and never with which values.

use std::error::Error;

use hookstead_store::{StoreError, ingest};
use hookstead_testkit::LogCapture;
use sqlx::PgConnection;

use crate::support::{event, fixture};

const CANARY: &str = "CANARY11";

/// Everything anyone could print of an error.
fn everything(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    text
}

async fn fail(connection: &mut PgConnection, sql: &'static str) -> StoreError {
    sqlx::query(sql)
        .execute(connection)
        .await
        .unwrap_err()
        .into()
}

#[tokio::test]
async fn sto_11_no_error_and_no_log_line_holds_a_value_of_the_row() {
    let logs = LogCapture::start();
    let mut fixture = fixture().await;
    let mut errors = Vec::new();
    let admin = &mut fixture.admin;
    errors.push(
        fail(
            admin,
            "insert into hookstead.sources (name, kind) values ('stripe-main', 'canary11')",
        )
        .await,
    );
    errors.push(
        fail(
            admin,
            "insert into hookstead.sources (name, kind, secret_ref) values (null, 'x', 'CANARY11')",
        )
        .await,
    );
    errors.push(fail(admin, "select 'CANARY11'::varchar(3)::int").await);
    errors.push(fail(admin, "select '{\"a\": CANARY11}'::jsonb").await);
    errors.push(fail(admin, "select 'CANARY11'::uuid").await);
    let unique = &errors[0];
    assert_eq!(
        (unique.sqlstate(), unique.constraint()),
        (Some("23505"), Some("sources_name_key"))
    );

    let mut receiver = fixture.receiver().await;
    let long_key = CANARY.repeat(100);
    let long_type = CANARY.repeat(40);
    let body = format!("{{\"a\":\"{CANARY}\"}}");
    errors.push(
        ingest(&mut receiver, &event(fixture.source, &long_key, b"{}"))
            .await
            .unwrap_err(),
    );
    let mut new = event(fixture.source, CANARY, body.as_bytes());
    new.event_type = &long_type;
    errors.push(ingest(&mut receiver, &new).await.unwrap_err());
    let constraints: Vec<_> = errors[5..].iter().map(StoreError::constraint).collect();
    assert_eq!(
        constraints,
        [
            Some("event_keys_external_event_id_shape"),
            Some("events_event_type_length")
        ]
    );
    for error in &errors {
        let text = everything(error).to_uppercase();
        assert!(!text.contains(CANARY), "{text}");
        tracing_error(error);
    }
    assert!(!logs.text().to_uppercase().contains(CANARY));
}

/// Logs it as a function would.
fn tracing_error(error: &StoreError) {
    tracing::error!(error = error as &dyn Error, "not stored");
}

#[tokio::test]
async fn a_refusal_names_state_constraint_and_table() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let error = ingest(&mut receiver, &event(fixture.source, " ", b"{}"))
        .await
        .unwrap_err();
    let shown = error.to_string();
    assert_eq!(
        shown,
        "the database refused: SQLSTATE 23514, constraint event_keys_external_event_id_shape, \
         table event_keys"
    );
    fixture.run("select 1").await;
}

#[tokio::test]
async fn a_database_that_was_never_migrated_is_called_so() {
    let mut fixture = fixture().await;
    fixture
        .run("alter table hookstead.event_keys rename to keys")
        .await;
    let mut receiver = fixture.receiver().await;
    let error = ingest(&mut receiver, &event(fixture.source, "e-1", b"{}"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the database refused: SQLSTATE 42P01 (a part of the schema is missing: the database \
         is not migrated to this version)"
    );
}

#[tokio::test]
async fn an_event_prints_neither_its_body_nor_its_headers() {
    let fixture = fixture().await;
    let headers = serde_json::json!({ "x-token": CANARY });
    let mut new = event(fixture.source, CANARY, CANARY.as_bytes());
    new.headers = &headers;
    new.payload = Some(CANARY);
    let shown = format!("{new:?} {new:#?}");
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(shown.contains(&new.event_id.to_string()));
}
