//! What every test stands on: a database of its own, a receiver, a clock and
//! secrets that the test sets.

mod requests;
mod stand_ins;

use std::time::Duration;

use hookstead_receiver::{Answer, DirectoryLimits, InboundRequest, Limits, Receiver};
use hookstead_secrets::{CacheLimits, VersionLabel};
use hookstead_store::{
    ConnectionLimits, Connections, Desired, DesiredSource, DesiredSubscription, EventFilter,
    EventSummary,
};
use hookstead_testkit::{TestDatabase, role};
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(crate) use requests::{
    acme, bare, code, event_id, github, hmac_hex, is_duplicate, post, stripe, with_header,
};
pub(crate) use stand_ins::{TestClock, TestSecrets};

/// The secret of every source that [`source`] makes.
pub(crate) const KEY: &str = "whk_test_key_2f6c1d9a7b3e5041";

/// The time at which every test starts, in Unix seconds: today, so that a
/// partition takes the events.
pub(crate) fn start() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

pub(crate) type TestReceiver = Receiver<TestSecrets>;

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) clock: TestClock,
    pub(crate) secrets: TestSecrets,
    pub(crate) receiver: TestReceiver,
}

/// The limits of a receiver in a test.
pub(crate) fn limits() -> Limits {
    Limits {
        max_body_bytes: 1024 * 1024,
        // Generous: a test machine may be busy, and no test measures time.
        store_timeout: Duration::from_secs(20),
        directory: DirectoryLimits::default(),
        secrets: CacheLimits::default(),
    }
}

/// A source of a built-in kind.
pub(crate) fn source(name: &str, kind: &str) -> DesiredSource {
    serde_json::from_value(json!({
        "name": name, "kind": kind, "secret_ref": format!("test:{name}"),
    }))
    .unwrap()
}

/// A source that signs `{timestamp}.{body}` with hex HMAC-SHA256, described as a user would.
pub(crate) fn custom_source(name: &str) -> DesiredSource {
    let scheme = hookstead_signing::Scheme::from_toml(
        r#"
        name = "Acme"
        [signature]
        algorithm = "hmac-sha256"
        from = "header:X-Acme-Signature"
        content = "{ts}.{body}"
        [timestamp]
        from = "header:X-Acme-Timestamp"
        [event]
        id = "header:X-Acme-Id"
        type = "body:$.type"
        "#,
    )
    .unwrap();
    DesiredSource {
        scheme: Some(scheme.to_json()),
        ..source(name, "acme")
    }
}

/// A subscription that takes everything.
pub(crate) fn subscription(name: &str) -> DesiredSubscription {
    serde_json::from_value(json!({
        "name": name, "destination": {"kind": "http", "url": "https://consumer.example.test/"},
    }))
    .unwrap()
}

impl World {
    /// A receiver with one connection over these sources, all with the secret [`KEY`].
    pub(crate) async fn with(sources: Vec<DesiredSource>) -> Self {
        Self::with_all(sources, Vec::new()).await
    }

    pub(crate) async fn with_all(
        sources: Vec<DesiredSource>,
        subscriptions: Vec<DesiredSubscription>,
    ) -> Self {
        let database = hookstead_testkit::database().await;
        let secrets = TestSecrets::default();
        for source in &sources {
            if let Some(reference) = &source.secret_ref {
                secrets.set(reference, &[(VersionLabel::Current, KEY)]);
            }
        }
        apply(&database, sources, subscriptions).await;
        let clock = TestClock::new(start());
        let url = database.url_as(role::RECEIVER);
        let receiver = receiver(&url, &secrets, &clock, 1);
        Self {
            database,
            clock,
            secrets,
            receiver,
        }
    }

    /// The usual world: one GitHub source.
    pub(crate) async fn github() -> Self {
        Self::with(vec![source("github", "github")]).await
    }

    /// Another process over the same database.
    pub(crate) fn another_receiver(&self) -> TestReceiver {
        let url = self.database.url_as(role::RECEIVER);
        receiver(&url, &self.secrets, &self.clock, 1)
    }

    /// All events, newest first.
    pub(crate) async fn events(&self) -> Vec<EventSummary> {
        let filter = EventFilter {
            limit: 1000,
            ..EventFilter::default()
        };
        let mut connection = self.database.connect().await;
        hookstead_store::list_events(&mut connection, &filter)
            .await
            .unwrap()
    }

    /// The exact bytes of the only event.
    pub(crate) async fn only_body(&self) -> Vec<u8> {
        let events = self.events().await;
        assert_eq!(events.len(), 1, "one event is expected");
        let mut connection = self.database.connect().await;
        let id = events[0].event_id;
        hookstead_store::pull_event(&mut connection, id)
            .await
            .unwrap()
            .unwrap()
    }

    /// The only event with its details, as JSON.
    pub(crate) async fn only_event(&self) -> Value {
        let events = self.events().await;
        assert_eq!(events.len(), 1, "one event is expected");
        let mut connection = self.database.connect().await;
        let shown = hookstead_store::show_event(&mut connection, events[0].event_id).await;
        serde_json::to_value(shown.unwrap().unwrap()).unwrap()
    }

    /// Runs a statement as the superuser.
    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.database.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
    }

    /// One number from a query of the superuser.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let mut connection = self.database.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// How many rows one delivery leaves in all tables together.
    pub(crate) async fn rows(&self) -> i64 {
        self.number(
            "select (select count(*) from hookstead.event_keys)
                  + (select count(*) from hookstead.events)
                  + (select count(*) from hookstead.live_deliveries)",
        )
        .await
    }

    pub(crate) async fn send(&self, request: InboundRequest) -> Answer {
        self.receiver.handle(request).await
    }
}

pub(crate) fn receiver(
    url: &str,
    secrets: &TestSecrets,
    clock: &TestClock,
    slots: usize,
) -> TestReceiver {
    let connections = Connections::from_url(
        url,
        ConnectionLimits {
            slots,
            acquire_timeout: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(20),
            ..ConnectionLimits::default()
        },
    )
    .unwrap();
    Receiver::new(connections, secrets.clone(), clock.clock(), limits(), None)
}

pub(crate) async fn apply(
    database: &TestDatabase,
    sources: Vec<DesiredSource>,
    subscriptions: Vec<DesiredSubscription>,
) {
    let desired = Desired {
        sources,
        subscriptions,
    };
    let mut connection = database.connect().await;
    hookstead_store::apply(&mut connection, &desired, "test")
        .await
        .unwrap();
}
