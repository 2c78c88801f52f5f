//! `cargo xtask postgres`, and the servers the other commands start.

use std::os::unix::fs::PermissionsExt as _;
use std::process::ExitCode;

use anyhow::Context as _;
use hookstead_localpg::{Binaries, Durability, Options, Server};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// Connections of the test server: parallel test processes with a few each, and the tests
/// that open many at once.
const MAX_CONNECTIONS: u32 = 300;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The major version; without it, whatever is found.
    #[arg(long)]
    major: Option<u16>,
}

/// A server on an empty data directory that goes with it.
pub(crate) struct TestServer {
    // Dropped in this order: the server stops before its folder is removed.
    pub(crate) server: Server,
    _folder: TempDir,
}

impl TestServer {
    /// Starts a server that never waits for the disk.
    pub(crate) fn start(binaries: Binaries) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("hookstead-postgres-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .context("making a folder for the server")?;
        let options = Options::new(folder.path().join("data"), binaries)
            .durability(Durability::None)
            .setting("max_connections", MAX_CONNECTIONS.to_string());
        Ok(Self {
            server: Server::start(options)?,
            _folder: folder,
        })
    }

    /// The server's major version.
    pub(crate) fn major(&self) -> u16 {
        self.server.binaries().version.0
    }

    /// The superuser's URL.
    pub(crate) fn url(&self) -> String {
        self.server.url("postgres")
    }
}

/// Programs of this major version, or of any usable one.
pub(crate) fn binaries(major: Option<u16>) -> anyhow::Result<Binaries> {
    let found = match major {
        Some(major) => Binaries::obtain_major(major),
        None => Binaries::obtain(),
    };
    Ok(found?)
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let running = TestServer::start(binaries(arguments.major)?)?;
    let (major, minor) = running.server.binaries().version;
    eprintln!("PostgreSQL {major}.{minor} runs until Ctrl-C. For single tests in another shell:");
    println!("export HOOKSTEAD_TEST_DATABASE_URL={}", running.url());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(until_told())?;
    running.server.stop()?;
    Ok(ExitCode::SUCCESS)
}

async fn until_told() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        told = tokio::signal::ctrl_c() => told,
        _ = terminate.recv() => Ok(()),
        _ = hangup.recv() => Ok(()),
    }
}
