//! The commands there are, and what runs each.

use std::process::ExitCode;

use clap::Parser;

use crate::{bench, postgres, soak, sqlx_data, test};

/// Hookstead's developer commands.
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
pub(crate) enum Arguments {
    /// Runs every check and every test; the last line is `N passed, M failed`.
    Test(test::Arguments),
    /// Writes the data that SQL queries are checked against without a server, or checks it.
    Sqlx(sqlx_data::Arguments),
    /// Runs a PostgreSQL server for tests until Ctrl-C and prints its URL.
    Postgres(postgres::Arguments),
    /// Runs a benchmark.
    Bench(bench::Arguments),
    /// Kills workers and relays while events are delivered, and counts what came of it.
    Soak(soak::Arguments),
}

impl Arguments {
    /// Runs the command.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Test(arguments) => test::run(arguments),
            Self::Sqlx(arguments) => sqlx_data::run(arguments),
            Self::Postgres(arguments) => postgres::run(arguments),
            Self::Bench(arguments) => bench::run(arguments),
            Self::Soak(arguments) => soak::run(arguments),
        }
    }
}
