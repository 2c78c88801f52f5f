//! The migrated database that each test's own is copied from.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};
use time::OffsetDateTime;
use url::Url;

use crate::database::with_database;
use crate::keeper::{drop_database, execute};
use crate::role;

/// Advisory lock on the server: one process builds the template, the others wait for it.
/// Roles belong to the whole server, so two migrations must not run on it at once either.
const BUILD_LOCK: i64 = 0x686b_7400;

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("the test server refused: {0}")]
    Server(#[from] sqlx::Error),
    #[error("the migrations failed: {0}")]
    Migrations(#[from] hookstead_store::StoreError),
    #[error("the migrations cannot be read in {dir}: {source}")]
    Files {
        dir: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// The name of a ready template; it is built where it is not there.
pub(crate) async fn ensure(connection: &mut PgConnection, server: &Url) -> Result<String, Problem> {
    let name = name()?;
    sqlx::query("select pg_advisory_lock($1)")
        .bind(BUILD_LOCK)
        .execute(&mut *connection)
        .await?;
    let built = build_once(connection, server, &name).await;
    sqlx::query("select pg_advisory_unlock($1)")
        .bind(BUILD_LOCK)
        .execute(&mut *connection)
        .await?;
    built.map(|()| name)
}

async fn build_once(
    connection: &mut PgConnection,
    server: &Url,
    name: &str,
) -> Result<(), Problem> {
    let ready: Option<bool> =
        sqlx::query_scalar("select datistemplate from pg_database where datname = $1")
            .bind(name)
            .fetch_optional(&mut *connection)
            .await?;
    if ready == Some(true) {
        return Ok(());
    }
    // One that is not marked yet was left half-built by a crash.
    drop_database(connection, name).await?;
    execute(connection, format!("create database {name}")).await?;
    let url = with_database(server, name);
    let mut inside = PgConnection::connect(url.as_str()).await?;
    hookstead_store::migrate(&mut inside).await?;
    for role in role::ALL {
        execute(&mut inside, format!("alter role {role} login")).await?;
    }
    inside.close().await?;
    let mark = format!("alter database {name} with is_template true");
    Ok(execute(connection, mark).await?)
}

/// A name that changes with the migrations, and with the day, because migrating makes the
/// partitions of the days ahead.
fn name() -> Result<String, Problem> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store");
    let mut files = Vec::new();
    sql_files(&dir, &mut files).map_err(|source| Problem::Files { dir, source })?;
    files.sort();
    let mut hash = Sha256::new();
    for (path, text) in files {
        hash.update(path.as_os_str().as_encoded_bytes());
        hash.update(text);
    }
    hash.update(
        OffsetDateTime::now_utc()
            .date()
            .to_julian_day()
            .to_be_bytes(),
    );
    let digest = hash.finalize();
    Ok(format!("hookstead_template_{}", hex::encode(&digest[..8])))
}

fn sql_files(dir: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            sql_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            let text = std::fs::read(&path)?;
            found.push((path, text));
        }
    }
    Ok(())
}
