//! `cargo xtask bench`.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::cold;
use crate::command::{cargo, succeeds};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to measure.
    which: Which,
    /// Arguments of the benchmark itself, after `--`; its `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    /// Signed requests through the receiver, beside pgbench with the same statement.
    Ingest,
    /// Claims and finishes, deliveries to a sink, and both after receiving, beside pgbench.
    Deliver,
    /// Starts of the receiver's release build, beside the least that a Lambda can be.
    Cold,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (package, bench) = match arguments.which {
        Which::Ingest => ("hookstead-receiver", "ingest"),
        Which::Deliver => ("hookstead-worker", "deliver"),
        Which::Cold => return cold::run(),
    };
    let mut command = cargo(["bench", "--quiet", "-p", package, "--bench", bench, "--"]);
    command.args(&arguments.rest).env("SQLX_OFFLINE", "true");
    let code = u8::from(!succeeds(&mut command)?);
    Ok(ExitCode::from(code))
}
