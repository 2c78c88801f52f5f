//! Ingest through the receiver's real handler, beside pgbench running the very
//! same statement on the same server in the same run.
//!
//! `cargo xtask bench ingest`. Rates depend on the machine and on what else runs
//! there; the ratio within one run is what counts. Cells are interleaved, and the
//! table gives medians over the rounds.

mod cell;
mod environments;
mod pgbench;
mod report;
mod sample;
mod server;

use clap::Parser;

use crate::cell::Cell;

/// Requests sent before the first cell: they fill caches and prepare statements.
const WARM_UP_S: f64 = 2.0;

/// Receives signed requests as fast as it can, beside pgbench with the same statement.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Concurrent environments, and pgbench clients, of each pair of cells.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16])]
    clients: Vec<usize>,
    /// Length of one cell, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Rounds over all cells.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// The major version of PostgreSQL; without it, whatever is found.
    #[arg(long)]
    postgres: Option<u16>,
    /// Prints one JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let server = server::Server::start(arguments.postgres)?;
    runtime.block_on(run(&arguments, &server))
}

async fn run(arguments: &Arguments, server: &server::Server) -> anyhow::Result<()> {
    server.prepare().await?;
    environments::run(server, 4, WARM_UP_S).await?;
    let mut cells = Vec::new();
    for round in 0..arguments.rounds {
        for &clients in &arguments.clients {
            server.reset().await?;
            // Who goes first changes, so that neither always runs on the emptier table.
            let ours_first = round % 2 == 0;
            for ours in [ours_first, !ours_first] {
                server.checkpoint().await?;
                let cell: Cell = if ours {
                    environments::run(server, clients, arguments.seconds).await?
                } else {
                    pgbench::run(server, clients, arguments.seconds).await?
                };
                cells.push(cell);
            }
        }
    }
    let report = report::Report::new(server.version(), &arguments.clients, &cells);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}
