//! The `hookstead` command. Everything it does is in the library of the same name.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = hookstead::Arguments::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(hookstead::run(&runtime, arguments))
}
