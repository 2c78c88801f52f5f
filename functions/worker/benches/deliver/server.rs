//! The server that both sides work on.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use hookstead_aws::keys::{KeyFile, Sealer, generate_secret};
use hookstead_domain::SubscriptionId;
use hookstead_localpg::{Binaries, Durability, Options};
use hookstead_store::{Desired, DesiredSubscription, NewSecret};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::cell::{Cell, number};
use crate::subject::Sealed;

/// The subscription that takes everything.
const SUBSCRIPTION: SubscriptionId = SubscriptionId::from_uuid(Uuid::from_u128(1));

/// A PostgreSQL that waits for its disk, as in production.
pub(crate) struct Server {
    // Dropped in this order: the server stops before its folder goes.
    server: hookstead_localpg::Server,
    folder: TempDir,
}

/// Counters of the server at one moment.
pub(crate) struct Counters {
    commits: i64,
    wal_bytes: i64,
}

impl Server {
    pub(crate) fn start(major: Option<u16>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("hookstead-bench-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()?;
        let binaries = match major {
            Some(major) => Binaries::obtain_major(major)?,
            None => Binaries::obtain()?,
        };
        let options = Options::new(folder.path().join("data"), binaries)
            .durability(Durability::Full)
            .setting("shared_buffers", "1GB")
            .setting("max_wal_size", "8GB")
            .setting("max_connections", "200");
        let server = hookstead_localpg::Server::start(options)?;
        Ok(Self { server, folder })
    }

    pub(crate) fn version(&self) -> String {
        let (major, minor) = self.server.binaries().version;
        format!("{major}.{minor}")
    }

    /// The URL of a role: both sides sign in as the same one.
    pub(crate) fn url_as(&self, role: &str) -> String {
        self.server.url_as(role, "postgres")
    }

    pub(crate) fn pgbench(&self) -> PathBuf {
        self.server.binaries().program("pgbench")
    }

    /// Where cells leave files for each other.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file with the key that the subscription's secret is sealed under.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    pub(crate) async fn superuser(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect(&self.server.url("postgres")).await?)
    }

    pub(crate) async fn execute(&self, sql: &'static str) -> anyhow::Result<()> {
        let mut connection = self.superuser().await?;
        sqlx::raw_sql(sql)
            .execute(&mut connection)
            .await
            .context(sql)?;
        Ok(())
    }

    /// The schema, one source, and one subscription that takes everything to `url`.
    pub(crate) async fn prepare(&self, url: &str) -> anyhow::Result<Subscribed> {
        let mut connection = self.superuser().await?;
        hookstead_store::migrate(&mut connection).await?;
        let desired: Desired = serde_json::from_value(json!({
            "sources": [{ "name": "stripe", "kind": "stripe", "secret_ref": "bench" }],
        }))?;
        hookstead_store::apply(&mut connection, &desired, "bench").await?;
        let sealer = Sealer::new(KeyFile::new(self.key_file()));
        let sealed = sealer.seal(&generate_secret()?, SUBSCRIPTION).await?;
        let destination = json!({ "kind": "http", "url": url, "allow_http": true });
        let subscription: DesiredSubscription = serde_json::from_value(json!({
            "name": "everything", "source": "stripe", "destination": destination,
        }))?;
        let secret = NewSecret {
            name: "everything".to_owned(),
            subscription_id: SUBSCRIPTION,
            sealed: sealed.bytes.clone(),
            key_id: sealed.key_id.clone(),
        };
        hookstead_store::add_subscription(&mut connection, &subscription, Some(&secret), "bench")
            .await?;
        self.execute("alter role hookstead_receiver login; alter role hookstead_worker login")
            .await?;
        let source = "select source_id from hookstead.sources where name = 'stripe'";
        Ok(Subscribed {
            source_id: sqlx::query_scalar(source)
                .fetch_one(&mut connection)
                .await?,
            sealed: Sealed {
                subscription_id: SUBSCRIPTION.as_uuid(),
                bytes: sealed.bytes,
                key_id: sealed.key_id,
                destination,
            },
        })
    }

    /// Empties all tables that cells write.
    pub(crate) async fn empty(&self) -> anyhow::Result<()> {
        self.execute(
            "truncate hookstead.event_keys, hookstead.events, hookstead.live_deliveries,
                 hookstead.done_deliveries, hookstead.attempts",
        )
        .await?;
        self.execute("checkpoint").await
    }

    /// How many of these there are.
    pub(crate) async fn count(&self, what: &'static str) -> anyhow::Result<usize> {
        let mut connection = self.superuser().await?;
        let count: i64 = sqlx::query_scalar(what).fetch_one(&mut connection).await?;
        Ok(usize::try_from(count)?)
    }

    /// Deliveries that were made.
    pub(crate) async fn succeeded(&self) -> anyhow::Result<usize> {
        self.count("select count(*) from hookstead.done_deliveries where state = 'succeeded'")
            .await
    }

    /// How long each attempt took, from the moment its task began to the whole answer.
    pub(crate) async fn attempts_ms(&self) -> anyhow::Result<Vec<f64>> {
        let mut connection = self.superuser().await?;
        let took = "select extract(epoch from ended_at - started_at)::float8 * 1000
                    from hookstead.attempts";
        Ok(sqlx::query_scalar(took).fetch_all(&mut connection).await?)
    }

    pub(crate) async fn counters(&self) -> anyhow::Result<Counters> {
        let mut connection = self.superuser().await?;
        // Sessions report their commits when they end; those of a cell have.
        let commits = "select xact_commit from pg_stat_database where datname = current_database()";
        let wal = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
        Ok(Counters {
            commits: sqlx::query_scalar(commits)
                .fetch_one(&mut connection)
                .await?,
            wal_bytes: sqlx::query_scalar(wal).fetch_one(&mut connection).await?,
        })
    }

    /// The cell with what the server counted since `before`.
    pub(crate) async fn counted(&self, before: &Counters, mut cell: Cell) -> anyhow::Result<Cell> {
        let after = self.counters().await?;
        let each = |counted: i64| {
            let counted = usize::try_from(counted).unwrap_or_default();
            number(counted) / number(cell.count)
        };
        let commits = each(after.commits - before.commits);
        let wal_bytes = each(after.wal_bytes - before.wal_bytes);
        cell.commits = Some(commits);
        cell.wal_bytes = Some(wal_bytes);
        Ok(cell)
    }
}

/// What there is to know about the source and the subscription.
pub(crate) struct Subscribed {
    pub(crate) source_id: Uuid,
    pub(crate) sealed: Sealed,
}
