//! What every test stands on: a database of its own, subscriptions, events, workers,
//! and a consumer that answers as the test says.

mod consumer;
mod relay;
mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookstead_domain::{DeliveryId, EventId, SourceId, SubscriptionId};
use hookstead_egress::{Egress, EgressSettings};
use hookstead_signing::Secret;
use hookstead_store::delivering::SealedSecret;
use hookstead_store::{ConnectionLimits, Connections, NewEvent};
use hookstead_testkit::{TestDatabase, role};
use hookstead_worker::destinations::{
    HttpDestination, OpenSecrets, OpeningSecret, SecretUnavailable,
};
use hookstead_worker::handler::{HandlerDestination, Handlers};
use hookstead_worker::{Destinations, QueueRecord, Worker, WorkerSettings};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use time::OffsetDateTime;
use uuid::Uuid;

pub(crate) use consumer::{Consumer, Reply, Request};
pub(crate) use rows::DeliveryRow;

/// The signing secret of every subscription, as it is "sealed" in these tests.
pub(crate) const SECRET: &str = "whsec_dGVzdC1zZWNyZXQtb2Ytc3Vic2NyaXB0aW9ucw==";

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) source: SourceId,
}

/// Secrets that are stored as they are.
pub(crate) struct PlainSecrets;

impl OpenSecrets for PlainSecrets {
    fn open<'a>(&'a self, sealed: &'a SealedSecret, _: SubscriptionId) -> OpeningSecret<'a> {
        let text = String::from_utf8(sealed.bytes.clone()).unwrap();
        let secret = Secret::new(text).map_err(|_| SecretUnavailable::new("empty"));
        Box::pin(std::future::ready(secret))
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = hookstead_testkit::database().await;
        let mut connection = database.connect().await;
        let source = sqlx::query_scalar(
            "insert into hookstead.sources (name, kind) values ('stripe-main', 'stripe') returning source_id",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        let source = SourceId::from_uuid(source);
        Self { database, source }
    }

    /// A subscription to everything, with a secret and a policy with these changes.
    pub(crate) async fn subscribe(&self, name: &str, destination: Value, policy: Value) -> Uuid {
        let mut connection = self.database.connect().await;
        sqlx::query_scalar(
            "insert into hookstead.subscriptions
                 (name, destination, secret_current, secret_current_key, retry_policy)
             values ($1, $2, $3, 'test', hookstead.default_retry_policy() || $4)
             returning subscription_id",
        )
        .bind(name)
        .bind(destination)
        .bind(SECRET.as_bytes())
        .bind(policy)
        .fetch_one(&mut connection)
        .await
        .unwrap()
    }

    /// A subscription to everything, delivered to this consumer.
    pub(crate) async fn subscribe_http(&self, name: &str, consumer: &Consumer) -> Uuid {
        let destination = consumer.destination(name);
        self.subscribe(name, destination, json!({"jitter": 0}))
            .await
    }

    /// An event of now.
    pub(crate) async fn event(&self, body: &[u8]) -> EventId {
        self.event_of("invoice.paid", body, OffsetDateTime::now_utc())
            .await
    }

    pub(crate) async fn event_of(
        &self,
        event_type: &str,
        body: &[u8],
        occurred_at: OffsetDateTime,
    ) -> EventId {
        let event_id = fresh_event_id();
        let key = event_id.to_string();
        let payload = std::str::from_utf8(body).ok();
        let payload = payload.filter(|text| serde_json::from_str::<Value>(text).is_ok());
        let event = NewEvent {
            event_id,
            source_id: self.source,
            external_event_id: &key,
            idempotency_key: None,
            event_type,
            tenant: None,
            schema_version: "1",
            raw_body: body,
            content_type: Some("application/json"),
            payload,
            payload_error: None,
            headers: &json!([]),
            signature_verified: true,
            verified_with: None,
            occurred_at: Some(occurred_at),
            received_at: OffsetDateTime::now_utc(),
            cause_event_id: None,
            region: None,
            kicked: false,
        };
        let mut connection = self.database.connect().await;
        hookstead_store::ingest(&mut connection, &event)
            .await
            .unwrap();
        event_id
    }

    /// The delivery of an event to a subscription.
    pub(crate) fn delivery(event: EventId, subscription: Uuid) -> DeliveryId {
        DeliveryId::derive(event, SubscriptionId::from_uuid(subscription))
    }

    /// Connections as the worker signs in.
    pub(crate) fn connections(&self, slots: usize) -> Connections {
        connections(&self.database.url_as(role::WORKER), slots)
    }

    pub(crate) fn worker(&self) -> Worker {
        self.worker_with(Handlers::new(), |_| {})
    }

    pub(crate) fn worker_with(
        &self,
        handlers: Handlers,
        change: impl FnOnce(&mut WorkerSettings),
    ) -> Worker {
        worker_over(self.connections(2), self.connections(8), handlers, change)
    }

    /// Messages for all that is pending, oldest first.
    pub(crate) async fn messages(&self) -> Vec<QueueRecord> {
        let rows = self.live().await;
        let rows = rows.iter().filter(|row| row.state == "pending");
        rows.map(|row| message(row.delivery_id, row.round, row.attempt_count + 1))
            .collect()
    }

    /// Lets a worker work off everything that is pending, in batches of ten.
    pub(crate) async fn work(&self, worker: &Worker) {
        for batch in self.messages().await.chunks(10) {
            let answer = worker.process(batch.to_vec()).await;
            assert_eq!(answer.failures, Vec::<String>::new());
        }
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.database.connect().await;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut connection = self.database.connect().await;
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }
}

pub(crate) fn worker_over(
    connections: Connections,
    for_handlers: Connections,
    handlers: Handlers,
    change: impl FnOnce(&mut WorkerSettings),
) -> Worker {
    let egress = Egress::new(EgressSettings {
        allowed: "127.0.0.0/8".parse().unwrap(),
        ..EgressSettings::default()
    });
    let http = HttpDestination::new(egress.unwrap(), Arc::new(PlainSecrets));
    let destinations = Destinations::new()
        .with("http", http)
        .with_handlers(HandlerDestination::new(handlers, for_handlers));
    let mut settings = WorkerSettings::named("test");
    change(&mut settings);
    Worker::new(connections, destinations, settings)
}

pub(crate) fn connections(url: &str, slots: usize) -> Connections {
    let limits = ConnectionLimits {
        slots,
        // Generous: a test machine may be busy, and no test measures time.
        acquire_timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        ..ConnectionLimits::default()
    };
    Connections::from_url(url, limits).unwrap()
}

/// Waits until the database says so. A test that waits in vain fails, and is not slow
/// where it does not.
pub(crate) async fn until<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, waiting)
        .await
        .expect("it never came to hold");
}

/// A message that asks for an attempt, with an id of its own.
pub(crate) fn message(delivery: Uuid, round: i32, attempt: i32) -> QueueRecord {
    let body = json!({
        "v": 1, "delivery_id": delivery, "round": round, "attempt": attempt, "reason": "due",
    });
    record(&body.to_string())
}

/// A message with this text and an id of its own.
pub(crate) fn record(body: &str) -> QueueRecord {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    QueueRecord::new(format!("message-{number}"), body).unwrap()
}

fn fresh_event_id() -> EventId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let now_ms = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    EventId::new(u64::try_from(now_ms).unwrap(), random)
}
