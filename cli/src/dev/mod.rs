//! `hookstead dev`: the whole system on this machine.

mod delivering;
mod logs;
mod partitions;
mod postgres;
mod ready;
pub(crate) mod secrets;
mod server;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use hookstead_egress::AllowList;
use hookstead_receiver::config::Config;
use hookstead_receiver::{Clock, DirectoryLimits, Limits, Receiver};
use hookstead_secrets::{CacheLimits, LocalSecrets};
use hookstead_store::{ConnectionLimits, Connections};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::apply;
use crate::database::Role;
use crate::error::{Doing as _, Error, Exit};
use crate::keys::{self, Issued};
use crate::manifest::Manifest;
use crate::output;
use crate::private;
use crate::project::{Project, ProjectArguments, Running};
use crate::signals::Signals;
use delivering::Delivering;
use postgres::Prepared;

/// Connections of the local receiver: as many requests are stored at once.
const CONNECTION_SLOTS: usize = 8;

/// How often it is looked whether PostgreSQL still runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Run the receiver with a PostgreSQL of its own on this machine
///
/// Starts PostgreSQL, brings the schema up to date, applies the manifest and
/// serves the receiver until Ctrl-C. Data and secrets stay for the next start.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HOOKSTEAD_LISTEN",
        default_value = "127.0.0.1:8080",
        value_parser = crate::address::parse
    )]
    listen: SocketAddr,
    /// Blocks of addresses that are not public and may be called all the same
    #[arg(
        long,
        value_name = "CIDR,…",
        env = private::VARIABLE,
        default_value = private::OF_DEV
    )]
    allow_private: String,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print the ready message and the logs as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut signals = Signals::listen()?;
    let project = Project::of(&arguments.project)?;
    let manifest = Manifest::read(&arguments.project.manifest)?;
    let allowed = private::read(&arguments.allow_private)?;
    manifest.check_addresses(&allowed)?;
    let config = configuration()?;
    let lock = project.lock()?;
    let listener = bind(arguments.listen).await?;
    logs::start(arguments.json)?;
    secrets::prepare(&project, &manifest)?;
    let started = tokio::select! {
        started = start(&project, &manifest, config, allowed) => Some(started?),
        () = signals.first() => None,
    };
    let Some(started) = started else {
        return Ok(Exit::Yes);
    };
    let Started {
        prepared,
        receiver,
        delivering,
        issued,
    } = started;
    let address = listener.local_addr().doing("cannot tell the address")?;
    let url = format!("http://{address}");
    let running = Running {
        url: url.clone(),
        database: prepared.database.clone(),
        allow_private: arguments.allow_private,
    };
    project.announce(&lock, &running)?;
    let (tell, told) = watch::channel(false);
    let max_body_bytes = receiver.max_body_bytes();
    let delivering = delivering.run(told.clone());
    let serving = server::serve(listener, Rc::new(receiver), max_body_bytes, told);
    let serving = tokio::task::spawn_local(serving);
    let keeping = tokio::task::spawn_local(partitions::keep(prepared.database.clone()));
    ready::print(
        &url,
        &project,
        &manifest,
        &prepared.described,
        &issued,
        arguments.json,
    )
    .await?;
    let mut server = prepared.server;
    let ended = until_told(&mut signals, server.as_mut()).await;
    tell.send(true).ok();
    keeping.abort();
    serving
        .await
        .map_err(io::Error::other)
        .doing("the server ended by a fault")?;
    delivering.ended().await?;
    drop(lock);
    if let Some(server) = server {
        let stopped = tokio::task::spawn_blocking(move || server.stop()).await;
        stopped
            .map_err(io::Error::other)
            .doing("cannot stop PostgreSQL")??;
    }
    if !arguments.json {
        output::line("Stopped. Data and secrets are kept for the next start.")?;
    }
    ended
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortTaken {
                address,
                command: "dev",
            },
            _ => Error::Listen { address, source },
        })
}

/// The receiver's own settings, from the environment.
fn configuration() -> Result<Config, Error> {
    let config = Config::read(|name| match name {
        // The receiver of `dev` connects by options that are made later.
        "HOOKSTEAD_DATABASE_URL" => Some("as configured".to_owned()),
        other => std::env::var(other).ok(),
    });
    config.map_err(|error| Error::usage("invalid_configuration", error.to_string()))
}

/// What `dev` has made and is about to run.
struct Started {
    prepared: Prepared,
    receiver: Receiver<LocalSecrets>,
    delivering: Delivering,
    issued: Vec<Issued>,
}

async fn start(
    project: &Project,
    manifest: &Manifest,
    config: Config,
    allowed: AllowList,
) -> Result<Started, Error> {
    let prepared = postgres::prepare(project).await?;
    let mut connection = prepared.database.connect_as(Role::Admin).await?;
    let sealer = keys::of_dev(project)?;
    let applied = apply::apply(&mut connection, manifest, Some(&sealer)).await?;
    let options = prepared.database.options_as(Role::Receiver)?;
    let limits = ConnectionLimits {
        slots: CONNECTION_SLOTS,
        acquire_timeout: config.store_timeout,
        connect_timeout: config.store_timeout,
        ..ConnectionLimits::default()
    };
    let connections = Connections::new(options, limits);
    let limits = Limits {
        // One machine, one person who waits: what they change works at once.
        directory: DirectoryLimits {
            fresh_for: time::Duration::seconds(1),
            unknown_for: time::Duration::ZERO,
        },
        secrets: CacheLimits {
            fresh_for: time::Duration::seconds(1),
            ..CacheLimits::default()
        },
        ..Limits::from_config(&config)
    };
    let secrets = LocalSecrets::new(project.folder());
    let receiver = Receiver::new(connections, secrets, Clock::system(), limits, config.region);
    let delivering = Delivering::new(project, &prepared.database, sealer, allowed)?;
    Ok(Started {
        receiver: receiver.with_kick(delivering.queue()),
        prepared,
        delivering,
        issued: applied.issued,
    })
}

/// Waits for Ctrl-C or SIGTERM, or for the end of the database server.
async fn until_told(
    signals: &mut Signals,
    mut server: Option<&mut hookstead_localpg::Server>,
) -> Result<Exit, Error> {
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = signals.first() => return Ok(Exit::Yes),
            _ = look.tick() => {
                if server.as_mut().is_some_and(|server| !server.is_running()) {
                    let source = io::Error::other("its log is server.log in the data folder");
                    return Err(Error::System { doing: "PostgreSQL ended by itself", source });
                }
            }
        }
    }
}
