//! `cargo xtask sqlx`: the data that queries are checked against without a server.
//!
//! sqlx's macros write it themselves when they are expanded with a server at hand and
//! `SQLX_OFFLINE_DIR` set, so no further tool is needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use sqlx::migrate::Migrator;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::command::{cargo, succeeds};
use crate::postgres::{TestServer, binaries};
use crate::workspace;

/// The crate that holds every query.
const PACKAGE: &str = "hookstead-store";

/// Where that crate keeps the list of applied migrations.
const HISTORY_TABLE: &str = "hookstead.schema_migrations";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Changes nothing; fails where the committed data is not what would be written.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let running = TestServer::start(binaries(None)?)?;
    println!("describing queries with PostgreSQL {}", running.major());
    if arguments.check {
        let same = check(&running)?;
        return Ok(ExitCode::from(u8::from(!same)));
    }
    let written = describe(&running)?;
    let committed = committed_dir();
    if committed.exists() {
        std::fs::remove_dir_all(&committed)?;
    }
    std::fs::create_dir_all(&committed)?;
    for (name, text) in &written {
        std::fs::write(committed.join(name), text)?;
    }
    println!(
        "{} queries described in {}",
        written.len(),
        committed.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Whether the committed data is what this server gives; says what differs.
pub(crate) fn check(running: &TestServer) -> anyhow::Result<bool> {
    let fresh = describe(running)?;
    let committed = read_dir(&committed_dir())?;
    let mut same = true;
    for (name, text) in &fresh {
        match committed.get(name) {
            Some(there) if there == text => {}
            Some(_) => {
                same = false;
                println!("{name} differs");
            }
            None => {
                same = false;
                println!("{name} is missing");
            }
        }
    }
    for name in committed.keys().filter(|name| !fresh.contains_key(*name)) {
        same = false;
        println!("{name} belongs to no query");
    }
    if !same {
        println!("run `cargo xtask sqlx` and commit what it writes");
    }
    Ok(same)
}

fn store_dir() -> PathBuf {
    workspace::root().join("shared/store")
}

fn committed_dir() -> PathBuf {
    workspace::root().join(".sqlx")
}

/// Expands every query against the migrated server, and gives the files written for it.
fn describe(running: &TestServer) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let url = migrate(running)?;
    let data = tempfile::tempdir()?;
    touch(&store_dir().join("src/lib.rs"))?;
    let mut command = cargo(["check", "--quiet", "-p", PACKAGE]);
    command
        .env("DATABASE_URL", url)
        .env("SQLX_OFFLINE", "false")
        .env("SQLX_OFFLINE_DIR", data.path());
    if !succeeds(&mut command)? {
        bail!("{PACKAGE} does not compile against the migrated server");
    }
    read_dir(data.path())
}

/// The macros are expanded only when the crate is compiled, and cargo does not know that
/// their outcome depends on a server.
fn touch(path: &Path) -> anyhow::Result<()> {
    let file = File::options()
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    Ok(file.set_modified(SystemTime::now())?)
}

/// Runs the migrations from their files: the crate that embeds them cannot be compiled
/// before its queries can be described. Gives the migrated database's URL.
fn migrate(running: &TestServer) -> anyhow::Result<String> {
    let url = running.server.url("postgres");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let dir = store_dir().join("migrations");
        let mut migrator = Migrator::new(dir.as_path()).await?;
        migrator.dangerous_set_table_name(HISTORY_TABLE);
        let mut connection = PgConnection::connect(&url).await?;
        connection.execute("create schema hookstead").await?;
        migrator.run(&mut connection).await?;
        anyhow::Ok(connection.close().await?)
    })?;
    Ok(url)
}

fn read_dir(dir: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    if !dir.exists() {
        return Ok(files);
    }
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        files.insert(name.to_string_lossy().into_owned(), std::fs::read(&path)?);
    }
    Ok(files)
}
