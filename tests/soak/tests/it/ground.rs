//! What the processes stand on: a PostgreSQL, an SQS, keys, sources, subscriptions.

use std::path::Path;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use hookstead_aws::Aws;
use hookstead_aws::keys::{KeyFile, Sealer};
use hookstead_aws::queue::SqsQueue;
use hookstead_domain::SubscriptionId;
use hookstead_receiver::{Clock, DirectoryLimits, InboundRequest, Limits, Receiver};
use hookstead_secrets::{CacheLimits, LocalSecrets};
use hookstead_signing::{Headers, Secret};
use hookstead_store::{
    Added, ConnectionLimits, Connections, Desired, DesiredSource, NewSecret, add_subscription,
};
use hookstead_testkit::{Emulator, TestDatabase, role};
use serde_json::{Value, json};
use sha2::Sha256;
use sqlx::{AssertSqlSafe, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// The name of the source that signs as GitHub does; also the file of its secret.
pub(crate) const SOURCE: &str = "github";

/// Receives of a message after which SQS itself moves it to the queue of dead letters.
const MAX_RECEIVES: u32 = 5;

pub(crate) struct Ground {
    pub(crate) database: TestDatabase,
    pub(crate) emulator: Emulator,
    /// URLs of the two queues.
    pub(crate) deliveries: String,
    pub(crate) dead_letters: String,
    /// Secrets, keys, and the logs of processes.
    folder: TempDir,
    sealer: Sealer,
    source_secret: String,
}

impl Ground {
    /// `visibility_s`: for how long the queue hides what was received.
    pub(crate) async fn new(source_secret: &str, visibility_s: u32) -> Self {
        let database = hookstead_testkit::database().await;
        let emulator = hookstead_testkit::aws().await;
        let (deliveries, dead_letters) = emulator
            .create_queue_with_dead_letters("soak", MAX_RECEIVES, visibility_s)
            .await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SOURCE), source_secret).unwrap();
        let sealer = Sealer::new(KeyFile::new(folder.path().join("keys")));
        let ground = Self {
            database,
            emulator,
            deliveries,
            dead_letters,
            folder,
            sealer,
            source_secret: source_secret.to_owned(),
        };
        ground.make_sources().await;
        ground
    }

    async fn make_sources(&self) {
        let source = |value| serde_json::from_value::<DesiredSource>(value).unwrap();
        let secret_ref = format!("file:{SOURCE}");
        let desired = Desired {
            sources: vec![
                source(json!({ "name": SOURCE, "kind": "github", "secret_ref": secret_ref })),
                source(json!({ "name": "app", "kind": "outbox" })),
            ],
            subscriptions: Vec::new(),
        };
        let mut connection = self.database.connect().await;
        let applied = hookstead_store::apply(&mut connection, &desired, "test").await;
        applied.unwrap();
    }

    /// A subscription to everything, with a secret of its own, sealed.
    pub(crate) async fn subscribe(
        &self,
        name: &str,
        destination: Value,
        policy: Value,
        secret: &str,
    ) -> Uuid {
        let subscription_id = SubscriptionId::from_uuid(fresh_id());
        let secret = Secret::new(secret.to_owned()).unwrap();
        let sealed = self.sealer.seal(&secret, subscription_id).await.unwrap();
        let secret = NewSecret {
            name: name.to_owned(),
            subscription_id,
            sealed: sealed.bytes,
            key_id: sealed.key_id,
        };
        let subscription = json!({
            "name": name, "destination": destination, "retry_policy": policy,
        });
        let subscription = serde_json::from_value(subscription).unwrap();
        let mut connection = self.database.connect().await;
        let added = add_subscription(&mut connection, &subscription, Some(&secret), "test").await;
        assert_eq!(added.unwrap(), Added::Yes(subscription_id));
        subscription_id.as_uuid()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// AWS at this endpoint.
    pub(crate) fn aws(&self, endpoint: &str) -> Aws {
        let read = |name: &str| match name {
            "AWS_ENDPOINT_URL" => Some(endpoint.to_owned()),
            name => self.emulator.variable(name),
        };
        Aws::read(read).unwrap()
    }

    /// A receiver that kicks through the SQS at this endpoint.
    pub(crate) fn receiver(&self, endpoint: &str, slots: usize) -> Receiver<LocalSecrets> {
        let limits = Limits {
            max_body_bytes: 1024 * 1024,
            // Generous: the machine is busy, and no test measures time.
            store_timeout: Duration::from_secs(60),
            directory: DirectoryLimits::default(),
            secrets: CacheLimits::default(),
        };
        let connection_limits = ConnectionLimits {
            slots,
            acquire_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(60),
            ..ConnectionLimits::default()
        };
        let url = self.database.url_as(role::RECEIVER);
        let connections = Connections::from_url(&url, connection_limits).unwrap();
        let secrets = LocalSecrets::new(self.folder.path());
        Receiver::new(connections, secrets, Clock::system(), limits, None)
            .with_kick(SqsQueue::new(&self.aws(endpoint), &self.deliveries))
    }

    /// A request as GitHub signs it, with more headers.
    pub(crate) fn signed(&self, id: &str, more: &[(&str, &str)], body: &[u8]) -> InboundRequest {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.source_secret.as_bytes()).unwrap();
        mac.update(body);
        let signature = format!("sha256={}", hex::encode(mac.finalize().into_bytes()));
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("X-GitHub-Event", "push"),
            ("X-GitHub-Delivery", id),
            ("X-Hub-Signature-256", &signature),
        ];
        headers.extend_from_slice(more);
        InboundRequest {
            method: "POST".to_owned(),
            path: format!("/webhooks/{SOURCE}"),
            raw_query: String::new(),
            origin: "https://hooks.example.test".to_owned(),
            headers: Headers::from_pairs(headers),
            body: body.to_vec(),
        }
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        number(&mut self.database.connect().await, sql).await
    }

    pub(crate) async fn execute(&self, sql: &str) {
        let mut connection = self.database.connect().await;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

/// A random id.
fn fresh_id() -> Uuid {
    let mut random = [0; 16];
    getrandom::fill(&mut random).unwrap();
    uuid::Builder::from_random_bytes(random).into_uuid()
}

/// One number from a query.
pub(crate) async fn number(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(connection)
        .await
        .unwrap()
}
