//! What every test stands on: a database of its own, a receiver, a clock and
//! secrets that the test sets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use hookstead_receiver::{Answer, Clock, DirectoryLimits, InboundRequest, Limits, Receiver};
use hookstead_secrets::{
    CacheLimits, FetchError, FetchFuture, SecretProvider, SecretVersion, VersionLabel,
};
use hookstead_signing::{Headers, Secret};
use hookstead_store::{
    ConnectionLimits, Connections, Desired, DesiredSource, DesiredSubscription, EventFilter,
    EventSummary,
};
use hookstead_testkit::{TestDatabase, role};
use serde_json::{Value, json};
use sha2::Sha256;
use time::OffsetDateTime;

/// The secret of every source that [`source`] makes.
pub(crate) const KEY: &str = "whk_test_key_2f6c1d9a7b3e5041";

/// The time at which every test starts, in Unix seconds: today, so that a
/// partition takes the events.
pub(crate) fn start() -> i64 {
    OffsetDateTime::now_utc().unix_timestamp()
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<OffsetDateTime>>);

impl TestClock {
    fn new(unix_s: i64) -> Self {
        let now = OffsetDateTime::from_unix_timestamp(unix_s).unwrap();
        Self(Arc::new(Mutex::new(now)))
    }

    pub(crate) fn now_s(&self) -> i64 {
        self.0.lock().unwrap().unix_timestamp()
    }

    pub(crate) fn advance_s(&self, seconds: i64) {
        *self.0.lock().unwrap() += time::Duration::seconds(seconds);
    }

    pub(crate) fn clock(&self) -> Clock {
        let clock = self.clone();
        Clock::from_fn(move || *clock.0.lock().unwrap())
    }
}

/// Secrets by reference, and how often they were read.
#[derive(Clone, Default)]
pub(crate) struct TestSecrets {
    versions: Arc<Mutex<HashMap<String, Vec<(VersionLabel, String)>>>>,
    down: Arc<Mutex<bool>>,
    fetches: Arc<AtomicUsize>,
}

impl TestSecrets {
    pub(crate) fn set(&self, reference: &str, versions: &[(VersionLabel, &str)]) {
        let versions = versions
            .iter()
            .map(|(l, s)| (*l, (*s).to_owned()))
            .collect();
        self.versions
            .lock()
            .unwrap()
            .insert(reference.to_owned(), versions);
    }

    pub(crate) fn set_down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl SecretProvider for TestSecrets {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let found = self.versions.lock().unwrap().get(reference).cloned();
        let down = *self.down.lock().unwrap();
        let reference = reference.to_owned();
        Box::pin(async move {
            if down {
                return Err(FetchError::Unavailable {
                    reference,
                    source: "connection refused".into(),
                });
            }
            let Some(found) = found else {
                return Err(FetchError::NotFound { reference });
            };
            let parse = |(label, text): (VersionLabel, String)| {
                let secret = Secret::new(text).map_err(|source| FetchError::Unusable {
                    reference: reference.clone(),
                    label,
                    source,
                })?;
                Ok(SecretVersion {
                    label,
                    secret,
                    not_after: None,
                })
            };
            found.into_iter().map(parse).collect()
        })
    }
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
            reused_timeout: Duration::from_secs(20),
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

/// A POST to `/webhooks/{name}`.
pub(crate) fn post(name: &str, headers: &[(&str, &str)], body: &[u8]) -> InboundRequest {
    InboundRequest {
        method: "POST".to_owned(),
        path: format!("/webhooks/{name}"),
        raw_query: String::new(),
        origin: "https://hooks.example.test".to_owned(),
        headers: Headers::from_pairs(headers.iter().copied()),
        body: body.to_vec(),
    }
}

/// A request without a body.
pub(crate) fn bare(method: &str, path: &str, raw_query: &str) -> InboundRequest {
    InboundRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        raw_query: raw_query.to_owned(),
        ..post("", &[], b"")
    }
}

/// HMAC-SHA256 as lower-case hex, independent of the crate under test.
pub(crate) fn hmac_hex(key: &str, message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(message);
    hex::encode(mac.finalize().into_bytes())
}

/// A GitHub delivery with this id, signed with [`KEY`].
pub(crate) fn github(id: &str, body: &[u8]) -> InboundRequest {
    let signature = format!("sha256={}", hmac_hex(KEY, body));
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("X-GitHub-Event", "push"),
        ("X-Hub-Signature-256", &signature),
    ];
    if !id.is_empty() {
        headers.push(("X-GitHub-Delivery", id));
    }
    post("github", &headers, body)
}

/// A Stripe delivery signed with [`KEY`] at `unix_s`.
pub(crate) fn stripe(unix_s: i64, body: &[u8]) -> InboundRequest {
    let signed = [format!("{unix_s}.").as_bytes(), body].concat();
    let signature = format!("t={unix_s},v1={}", hmac_hex(KEY, &signed));
    let headers = [
        ("Content-Type", "application/json; charset=utf-8"),
        ("Stripe-Signature", signature.as_str()),
    ];
    post("stripe", &headers, body)
}

/// A delivery of [`custom_source`], signed with [`KEY`] at `unix_s`.
pub(crate) fn acme(unix_s: i64, id: &str, body: &[u8]) -> InboundRequest {
    let signed = [format!("{unix_s}.").as_bytes(), body].concat();
    let signature = hmac_hex(KEY, &signed);
    let timestamp = unix_s.to_string();
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("X-Acme-Timestamp", timestamp.as_str()),
        ("X-Acme-Signature", signature.as_str()),
    ];
    if !id.is_empty() {
        headers.push(("X-Acme-Id", id));
    }
    post("acme", &headers, body)
}

/// Replaces the value of a header, or adds it.
pub(crate) fn with_header(mut request: InboundRequest, name: &str, value: &str) -> InboundRequest {
    let others: Vec<(String, String)> = request
        .headers
        .iter()
        .filter(|(known, _)| !known.eq_ignore_ascii_case(name))
        .map(|(known, value)| (known.to_owned(), value.to_owned()))
        .collect();
    request.headers = Headers::from_pairs(others);
    request.headers.push(name, value);
    request
}

/// The code in a refusal's body, and that nothing else is in it.
pub(crate) fn code(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        body.as_object().unwrap().len(),
        1,
        "a refusal says its code and nothing else"
    );
    body["error"].as_str().unwrap().to_owned()
}

/// The event id in an answer.
pub(crate) fn event_id(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["event_id"].as_str().unwrap().to_owned()
}

pub(crate) fn is_duplicate(answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["duplicate"] == json!(true)
}
