//! `cargo xtask soak`: the soak test, larger than it runs among the other tests.

use std::process::ExitCode;

use crate::command::{cargo, count_tests};
use crate::postgres::{TestServer, binaries};

/// The test, and what it lies in.
const PACKAGE: &str = "hookstead-soak";
const TEST: &str = "soak::workers_and_relays_that_are_killed_lose_nothing_and_repeat_no_effect";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many events, each for three subscriptions.
    #[arg(long, default_value_t = 1_000)]
    events: u64,
    /// The seed of an earlier run, to kill after the same plan; the run prints its own.
    #[arg(long)]
    seed: Option<u64>,
    /// The major version of PostgreSQL; without it, whatever is found.
    #[arg(long)]
    postgres: Option<u16>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let running = TestServer::start(binaries(arguments.postgres)?)?;
    let mut command = cargo([
        "test", "--quiet", "--locked", "-p", PACKAGE, "--test", "it", "--",
    ]);
    command
        .args([TEST, "--exact", "--nocapture"])
        .env("SQLX_OFFLINE", "true")
        .env("HOOKSTEAD_TEST_DATABASE_URL", running.url())
        .env("HOOKSTEAD_SOAK_EVENTS", arguments.events.to_string());
    if let Some(seed) = arguments.seed {
        command.env("HOOKSTEAD_SOAK_SEED", seed.to_string());
    }
    let tally = count_tests(&mut command)?;
    running.server.stop()?;
    // A run of no test has shown nothing.
    let is_shown = tally.passed == 1 && tally.failed == 0;
    Ok(ExitCode::from(u8::from(!is_shown)))
}
