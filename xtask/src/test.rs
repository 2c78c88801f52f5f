//! `cargo xtask test`: every check, then every test.

use std::process::ExitCode;

use clap::ValueEnum;
use hookstead_localpg::Binaries;

use crate::command::{cargo, count_tests, succeeds};
use crate::postgres::{TestServer, binaries};
use crate::tally::Tally;
use crate::{deny, fuzz, sqlx_data};

/// How long each fuzz target runs where no time is given.
const FUZZ_S: &str = "60";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PostgreSQL major versions to run all tests on, as `15,18`; without it, whatever is found.
    #[arg(long, value_delimiter = ',')]
    postgres: Vec<u16>,
    /// Also builds the fuzz targets and runs each for so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = FUZZ_S)]
    fuzz: Option<u64>,
    /// Only these steps.
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<Step>,
    /// All but these steps.
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    skip: Vec<Step>,
}

/// One step, in the order they run: what fails fastest comes first, but the SQL check comes
/// before clippy because it compiles the store crate anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The code is formatted.
    Fmt,
    /// Bans, licenses and sources of dependencies; advisories where reachable.
    Deny,
    /// The committed query data is that of the queries.
    Sqlx,
    /// No warning of clippy, on all targets.
    Clippy,
    /// No warning of rustdoc.
    Doc,
    /// The `hookstead` command builds.
    Build,
    /// All tests.
    Tests,
}

impl Arguments {
    fn wants(&self, step: Step) -> bool {
        let only = self.only.is_empty() || self.only.contains(&step);
        only && !self.skip.contains(&step)
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut tally = Tally::default();
    for step in Step::value_variants() {
        if arguments.wants(*step) {
            tally += run_step(*step, arguments);
        }
    }
    if let Some(seconds) = arguments.fuzz {
        println!("\n== fuzz");
        tally += counted(fuzz::run(seconds));
    }
    println!("\n{tally}");
    Ok(ExitCode::from(u8::from(tally.failed > 0)))
}

fn run_step(step: Step, arguments: &Arguments) -> Tally {
    println!("\n== {step:?}");
    match step {
        Step::Fmt => checked(fmt()),
        Step::Deny => checked(deny::check()),
        Step::Sqlx => checked(check_sqlx(arguments)),
        Step::Clippy => checked(clippy()),
        Step::Doc => checked(doc()),
        Step::Build => checked(build(&["build", "--locked", "-p", "hookstead"])),
        Step::Tests => counted(tests(arguments)),
    }
}

/// A check is no test: passing adds nothing, failing adds a failure.
fn checked(outcome: anyhow::Result<bool>) -> Tally {
    match outcome {
        Ok(true) => Tally::default(),
        Ok(false) => Tally::FAILURE,
        Err(error) => {
            println!("{error:#}");
            Tally::FAILURE
        }
    }
}

fn counted(outcome: anyhow::Result<Tally>) -> Tally {
    outcome.unwrap_or_else(|error| {
        println!("{error:#}");
        Tally::FAILURE
    })
}

fn fmt() -> anyhow::Result<bool> {
    let workspace = succeeds(&mut cargo(["fmt", "--all", "--check"]))?;
    // The fuzz package is a workspace of its own.
    let fuzz = ["fmt", "--manifest-path", "tests/fuzz/Cargo.toml", "--check"];
    Ok(succeeds(&mut cargo(fuzz))? && workspace)
}

fn build(arguments: &[&str]) -> anyhow::Result<bool> {
    succeeds(cargo(arguments).env("SQLX_OFFLINE", "true"))
}

fn clippy() -> anyhow::Result<bool> {
    let flags = ["clippy", "--workspace", "--all-targets", "--locked"];
    let mut command = cargo(flags);
    command.args(["--", "-D", "warnings"]);
    succeeds(command.env("SQLX_OFFLINE", "true"))
}

fn doc() -> anyhow::Result<bool> {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    succeeds(command.env("SQLX_OFFLINE", "true"))
}

/// The oldest version asked for describes the queries: what it knows, the newer ones know too.
fn check_sqlx(arguments: &Arguments) -> anyhow::Result<bool> {
    let oldest = arguments.postgres.iter().min().copied();
    sqlx_data::check(&TestServer::start(binaries(oldest)?)?)
}

fn tests(arguments: &Arguments) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let versions: Vec<Option<u16>> = match arguments.postgres.as_slice() {
        [] => vec![None],
        named => named.iter().copied().map(Some).collect(),
    };
    for version in versions {
        tally += tests_on(binaries(version)?)?;
    }
    Ok(tally)
}

/// All tests, also where they need no database: choosing packages would change the features
/// of what they are built with, and building anew takes longer than running them again.
fn tests_on(binaries: Binaries) -> anyhow::Result<Tally> {
    let (major, minor) = binaries.version;
    println!("\n== on PostgreSQL {major}.{minor}");
    let bin_dir = binaries.bin_dir.clone();
    let running = TestServer::start(binaries)?;
    let mut command = cargo(["test", "--workspace", "--locked", "--no-fail-fast"]);
    command
        .env("SQLX_OFFLINE", "true")
        .env("HOOKSTEAD_TEST_DATABASE_URL", running.url())
        // Tests that start servers of their own use the same version.
        .env("HOOKSTEAD_PG_BIN", bin_dir);
    let tally = count_tests(&mut command)?;
    running.server.stop()?;
    Ok(tally)
}
