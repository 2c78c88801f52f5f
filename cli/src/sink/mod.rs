//! `hookstead sink`: a receiver to try deliveries against.
//!
//! [`Sink`] is also a library piece: tests and benches start one on a listener of
//! their own and ask it what arrived.

mod connection;
mod mode;
mod received;
mod server;
mod set;

pub use connection::HUGE_BYTES;
pub use mode::{Mode, UnknownMode};
pub use received::{Counts, Received};
pub use server::{Observer, Sink, SinkOptions};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use hookstead_signing::Secret;
use serde_json::json;
use tokio::net::TcpListener;

use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, bad, bold, clock, dim, good, printable};
use crate::secret;
use crate::signals::Signals;

/// Where a sink listens unless it is told otherwise.
const LISTEN: &str = "127.0.0.1:9000";

/// Receive deliveries and show them, to try things
///
/// Prints a line for every request and answers as switched: with --mode at the
/// start, with `hookstead sink set MODE` while it runs. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Set(set::Arguments),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, value_parser = crate::address::parse)]
    listen: SocketAddr,
    /// ok, slow=MS, status=N, reset, huge, hang, or flaky=P
    #[arg(long, value_name = "MODE", default_value = "ok")]
    mode: Mode,
    /// Verify signatures with this Standard Webhooks secret; others can read a command line
    #[arg(long, value_name = "TEXT")]
    secret: Vec<String>,
    /// Verify signatures with the secret in this file; repeat while two are in use
    #[arg(long, value_name = "FILE")]
    secret_file: Vec<PathBuf>,
    /// Print a JSON object for every request
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    match arguments.what {
        Some(What::Set(arguments)) => set::run(arguments).await,
        None => receive(arguments.run).await,
    }
}

async fn receive(arguments: Run) -> Result<Exit, Error> {
    let mut signals = Signals::listen()?;
    let address = arguments.listen;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortTaken {
                address,
                command: "sink",
            },
            _ => Error::Listen { address, source },
        })?;
    let as_json = arguments.json;
    let options = SinkOptions {
        mode: arguments.mode,
        secrets: secrets(&arguments)?,
        // Everything is printed and nothing asked for afterwards.
        keep: 0,
        observer: Some(Box::new(move |received| print(received, as_json))),
    };
    // Before it serves, so that it is the first line.
    let url = format!(
        "http://{}",
        listener.local_addr().doing("cannot tell the address")?
    );
    if as_json {
        let ready = json!({ "ready": true, "url": url, "mode": arguments.mode });
        output::line(&ready.to_string())?;
    } else {
        output::line(&bold(&format!(
            "Listening on {url}, mode {}",
            arguments.mode
        )))?;
        let program = output::program();
        let hint = format!("`{program} sink set status=503` switches it, Ctrl-C ends it.");
        output::line(&dim(&hint))?;
    }
    let sink = Sink::start(listener, options).doing("cannot tell the address")?;
    signals.first().await;
    let counts = sink.stop().await;
    if as_json {
        output::line(&serde_json::to_string(&counts).unwrap_or_default())?;
    } else {
        output::line(&format!(
            "{} received: {} accepted, {} refused; {} verified, {} not.",
            counts.received, counts.accepted, counts.refused, counts.verified, counts.not_verified
        ))?;
    }
    Ok(Exit::Yes)
}

fn secrets(arguments: &Run) -> Result<Vec<Secret>, Error> {
    let texts = arguments.secret.iter().map(|text| secret::from_text(text));
    let files = arguments
        .secret_file
        .iter()
        .map(|path| secret::from_file(path));
    texts.chain(files).collect()
}

/// One line. A terminal that is gone is no reason to answer otherwise.
fn print(received: &Received, as_json: bool) {
    if as_json {
        let text = serde_json::to_string(received).unwrap_or_default();
        output::line(&text).ok();
        return;
    }
    let at = clock(received.at);
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let attempt = received.attempt.map(|number| number.to_string());
    let verified = match received.verified {
        Some(true) => good("verified"),
        Some(false) => bad("not verified"),
        None => dim("not checked"),
    };
    let facts = printable(&format!(
        "{at}  {}  attempt {}  {}  {} bytes",
        or_dash(&received.webhook_id),
        or_dash(&attempt),
        or_dash(&received.event_type),
        received.bytes,
    ));
    output::line(&format!("{facts}  {verified}  {}", received.answer)).ok();
}
