//! The server that both sides store in.

use std::os::unix::fs::PermissionsExt;

use anyhow::Context;
use hookstead_localpg::{Binaries, Durability, Options};
use hookstead_store::Desired;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// A PostgreSQL that waits for its disk, as in production.
pub(crate) struct Server {
    // Dropped in this order: the server stops before its folder goes.
    server: hookstead_localpg::Server,
    _folder: TempDir,
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
        Ok(Self {
            server,
            _folder: folder,
        })
    }

    pub(crate) fn version(&self) -> String {
        let (major, minor) = self.server.binaries().version;
        format!("{major}.{minor}")
    }

    /// The receiver's URL: both sides sign in as its role.
    pub(crate) fn url(&self) -> String {
        self.server.url_as("hookstead_receiver", "postgres")
    }

    pub(crate) fn pgbench(&self) -> std::path::PathBuf {
        self.server.binaries().program("pgbench")
    }

    async fn superuser(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect(&self.server.url("postgres")).await?)
    }

    async fn execute(&self, sql: &'static str) -> anyhow::Result<()> {
        let mut connection = self.superuser().await?;
        sqlx::raw_sql(sql)
            .execute(&mut connection)
            .await
            .context(sql)?;
        Ok(())
    }

    /// The schema, one source and one subscription that takes everything.
    pub(crate) async fn prepare(&self) -> anyhow::Result<()> {
        let mut connection = self.superuser().await?;
        hookstead_store::migrate(&mut connection).await?;
        let desired: Desired = serde_json::from_value(json!({
            "sources": [{ "name": "stripe", "kind": "stripe", "secret_ref": "bench" }],
            "subscriptions": [{
                "name": "everything", "destination": { "kind": "http", "url": "https://example.com/" }
            }],
        }))?;
        hookstead_store::apply(&mut connection, &desired, "bench").await?;
        self.execute("alter role hookstead_receiver login").await
    }

    /// Empties the tables.
    pub(crate) async fn reset(&self) -> anyhow::Result<()> {
        self.execute("truncate hookstead.event_keys, hookstead.events, hookstead.live_deliveries")
            .await
    }

    pub(crate) async fn checkpoint(&self) -> anyhow::Result<()> {
        self.execute("checkpoint").await
    }

    pub(crate) async fn source_id(&self) -> anyhow::Result<String> {
        let mut connection = self.superuser().await?;
        let id = "select source_id::text from hookstead.sources where name = 'stripe'";
        Ok(sqlx::query_scalar(id).fetch_one(&mut connection).await?)
    }

    pub(crate) async fn events(&self) -> anyhow::Result<u64> {
        let mut connection = self.superuser().await?;
        let count: i64 = sqlx::query_scalar("select count(*) from hookstead.events")
            .fetch_one(&mut connection)
            .await?;
        Ok(u64::try_from(count)?)
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
}

impl Counters {
    /// Commits and bytes of write-ahead log since `before`, for each of `events`.
    #[expect(clippy::cast_precision_loss, reason = "counts of one cell")]
    pub(crate) fn per_event(&self, before: &Self, events: u64) -> (f64, f64) {
        let per_event = |count: i64| count as f64 / events as f64;
        (
            per_event(self.commits - before.commits),
            per_event(self.wal_bytes - before.wal_bytes),
        )
    }
}
