//! What most tests begin with: a source, an event, and a look at the tables.

use std::sync::atomic::{AtomicU64, Ordering};

use hookstead_domain::{EventId, SourceId};
use hookstead_store::payload::{PayloadCheck, check};
use hookstead_store::{ConnectionLimits, Connections, Ingested, NewEvent};
use hookstead_testkit::{TestDatabase, role};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

/// A database with one source in it.
pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
    pub(crate) admin: PgConnection,
    pub(crate) source: SourceId,
}

pub(crate) async fn fixture() -> Fixture {
    let database = hookstead_testkit::database().await;
    let mut admin = database.connect().await;
    let source = add_source(&mut admin, "stripe-main").await;
    Fixture {
        database,
        admin,
        source,
    }
}

impl Fixture {
    /// A connection as the receiver signs in.
    pub(crate) async fn receiver(&self) -> PgConnection {
        self.database.connect_as(role::RECEIVER).await
    }

    /// Connections as the receiver uses them.
    pub(crate) fn connections(&self, slots: usize) -> Connections {
        let limits = ConnectionLimits {
            slots,
            ..ConnectionLimits::default()
        };
        Connections::from_url(&self.database.url_as(role::RECEIVER), limits).unwrap()
    }

    pub(crate) async fn subscribe(&mut self, name: &str) -> Uuid {
        self.subscribe_with(name, "event_types", "'{}'").await
    }

    /// Adds a subscription with one column set to an SQL expression.
    pub(crate) async fn subscribe_with(&mut self, name: &str, column: &str, value: &str) -> Uuid {
        let sql = format!(
            "insert into hookstead.subscriptions (name, destination, {column})
             values ($1, '{{\"kind\": \"http\", \"url\": \"https://consumer.example/\"}}', {value}) returning subscription_id"
        );
        sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(name)
            .fetch_one(&mut self.admin)
            .await
            .unwrap()
    }

    pub(crate) async fn count(&mut self, table: &str) -> i64 {
        let sql = format!("select count(*) from hookstead.{table}");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut self.admin)
            .await
            .unwrap()
    }

    /// Keys, events, live deliveries.
    pub(crate) async fn counts(&mut self) -> (i64, i64, i64) {
        (
            self.count("event_keys").await,
            self.count("events").await,
            self.count("live_deliveries").await,
        )
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        run(&mut self.admin, sql).await;
    }
}

/// How many subscriptions an event was stored for; `None` for a duplicate.
pub(crate) fn stored_for(outcome: &Ingested) -> Option<usize> {
    match outcome {
        Ingested::Stored { deliveries } => Some(deliveries.len()),
        Ingested::Duplicate => None,
    }
}

pub(crate) async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .unwrap();
}

pub(crate) async fn add_source(connection: &mut PgConnection, name: &str) -> SourceId {
    let id = sqlx::query_scalar(
        "insert into hookstead.sources (name, kind) values ($1, 'stripe') returning source_id",
    )
    .bind(name)
    .fetch_one(connection)
    .await
    .unwrap();
    SourceId::from_uuid(id)
}

/// Ids that differ within a process, which is as far as a test database reaches.
pub(crate) fn event_id_at(time: OffsetDateTime) -> EventId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let ms = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap();
    EventId::new(ms, random)
}

/// An event of now, with a payload where the body can be one.
pub(crate) fn event<'a>(source: SourceId, key: &'a str, body: &'a [u8]) -> NewEvent<'a> {
    const NO_HEADERS: &Value = &Value::Array(Vec::new());
    let now = OffsetDateTime::now_utc();
    let (payload, payload_error) = match check(body) {
        PayloadCheck::Fits(text) => (Some(text), None),
        PayloadCheck::Refused(error) => (None, Some(error)),
    };
    NewEvent {
        event_id: event_id_at(now),
        source_id: source,
        external_event_id: key,
        idempotency_key: None,
        event_type: "invoice.paid",
        tenant: None,
        schema_version: "1",
        raw_body: body,
        content_type: Some("application/json"),
        payload,
        payload_error,
        headers: NO_HEADERS,
        signature_verified: true,
        verified_with: Some("AWSCURRENT"),
        occurred_at: Some(now),
        received_at: now,
        cause_event_id: None,
        region: Some("eu-west-1"),
        kicked: false,
    }
}
