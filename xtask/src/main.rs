//! Developer commands: test, sqlx, postgres, bench, soak. `cargo xtask help` lists them.

mod arguments;
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

fn main() -> anyhow::Result<ExitCode> {
    arguments::Arguments::parse().run()
}
