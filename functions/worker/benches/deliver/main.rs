//! Delivering, beside pgbench running the very same statements on the same server in
//! the same run.
//!
//! `cargo xtask bench deliver`. Three kinds of cells:
//!
//! - `claim`: the store's claim and finish without any destination, beside pgbench with
//!   both statements over the same rows;
//! - `deliver`: due deliveries through poller, worker and client to a sink on loopback,
//!   beside the client alone at the same concurrency;
//! - `receive`: signed requests through the receiver, and on to the sink in the same
//!   process, beside pgbench with the receiver's one statement.
//!
//! What is measured runs in a process of its own, fresh for each cell, and so does the
//! sink: resident memory is that of the program, not of the measuring. Rates depend on
//! the machine and on what else runs there; the ratio within one run is what counts.

mod cell;
mod child;
mod claim_finish;
mod lines;
mod pgbench;
mod process;
mod report;
mod rounds;
mod sample;
mod server;
mod sink;
mod stock;
mod subject;

use clap::{Parser, ValueEnum};

/// What the measured process is given, for all kinds of cells.
const THREADS: usize = 2;

/// Delivers as fast as it can, beside pgbench with the same statements.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// The kinds of cells to run.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    cells: Vec<Kind>,
    /// Concurrent clients of each pair of `claim` cells.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16])]
    clients: Vec<usize>,
    /// Deliveries, or events, of one cell.
    #[arg(long, default_value_t = 20_000)]
    deliveries: usize,
    /// Rounds over all cells.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Batches that the poller works off at once.
    #[arg(long, default_value_t = 4)]
    batches: usize,
    /// Connections of the worker.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Requests at once, and connections of the receiver, in `receive` cells.
    #[arg(long, default_value_t = 16)]
    senders: usize,
    /// The major version of PostgreSQL; without it, whatever is found.
    #[arg(long)]
    postgres: Option<u16>,
    /// Prints one JSON document instead of the tables.
    #[arg(long)]
    json: bool,
    /// Given to the processes that this one starts.
    #[arg(long, hide = true)]
    child: Option<String>,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A kind of cell.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Claim and finish alone.
    Claim,
    /// Due deliveries to a sink.
    Deliver,
    /// Requests, and their deliveries to a sink.
    Receive,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Claim, Self::Deliver, Self::Receive];
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(task) = &arguments.child {
        return child::run(serde_json::from_str(task)?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()?;
    let server = server::Server::start(arguments.postgres)?;
    let sink = sink::Sink::start()?;
    let cells = runtime.block_on(rounds::run(&arguments, &server, &sink))?;
    let report = report::Report::new(server.version(), cells);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}
