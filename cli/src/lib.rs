//! The `hookstead` command: one module per sub-command.
//!
//! docs/cli.md is the reference for users, docs/manifest.md the one for the
//! manifest. Commands print what was asked for to standard output and
//! everything else to standard error.

mod address;
mod apply;
mod arguments;
mod attempts;
mod chance;
mod database;
mod deliveries;
mod dev;
mod error;
mod events;
mod http_client;
mod keys;
mod kinds;
mod latin1;
mod manifest;
mod output;
mod private;
mod project;
mod publish;
mod raw_request;
mod report;
mod secret;
mod send;
mod signals;
mod since;
pub mod sink;
mod subscriptions;
mod tail;
mod verify;

use std::process::ExitCode;

pub use arguments::Arguments;
use arguments::Command;
use error::{Error, Exit};

/// Runs one command to its end and says how the process is to end.
///
/// An error is printed to standard error with its code and its causes.
pub fn run(runtime: &tokio::runtime::Runtime, arguments: Arguments) -> ExitCode {
    // Tasks of the local server need not be sendable: everything runs on this thread.
    let local = tokio::task::LocalSet::new();
    let done = local.block_on(runtime, dispatch(arguments.command));
    let exit = match done {
        Ok(exit) => exit,
        Err(error) => {
            error.print();
            error.exit()
        }
    };
    ExitCode::from(exit as u8)
}

async fn dispatch(command: Command) -> Result<Exit, Error> {
    match command {
        Command::Dev(arguments) => dev::run(arguments).await,
        Command::Send(arguments) => send::run(arguments).await,
        Command::Verify(arguments) => verify::run(arguments).await,
        Command::Events(arguments) => events::run(arguments).await,
        Command::Apply(arguments) => apply::run(arguments).await,
        Command::Kinds(arguments) => kinds::run(arguments),
        Command::Deliveries(arguments) => deliveries::run(arguments).await,
        Command::Attempts(arguments) => attempts::run(arguments).await,
        Command::Tail(arguments) => tail::run(arguments).await,
        Command::Subscriptions(arguments) => subscriptions::run(arguments).await,
        Command::Publish(arguments) => publish::run(arguments).await,
        Command::Report(arguments) => report::run(arguments).await,
        Command::Sink(arguments) => sink::run(arguments).await,
    }
}
