//! Developer commands: test, sqlx, postgres, bench, soak. `cargo xtask help` lists them.

mod bench;
mod cold;
mod command;
mod deny;
mod fuzz;
mod postgres;
mod soak;
mod sqlx_data;
mod tally;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Hookstead's developer commands.
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
enum Arguments {
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

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse() {
        Arguments::Test(arguments) => test::run(&arguments),
        Arguments::Sqlx(arguments) => sqlx_data::run(&arguments),
        Arguments::Postgres(arguments) => postgres::run(&arguments),
        Arguments::Bench(arguments) => bench::run(&arguments),
        Arguments::Soak(arguments) => soak::run(&arguments),
    }
}
