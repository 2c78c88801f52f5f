//! The command line.

use clap::{Parser, Subcommand};

use crate::{apply, dev, events, kinds, send, verify};

/// Receive, verify, keep and look at webhooks.
///
/// `hookstead dev` runs everything on this machine. Exit status: 0 done, 1 the
/// answer is no, 2 the arguments or the manifest cannot be used, 3 something
/// could not be reached.
#[derive(Debug, Parser)]
#[command(name = "hookstead", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the receiver with a PostgreSQL of its own on this machine
    Dev(dev::Arguments),
    /// Sign a sample webhook and post it
    Send(send::Arguments),
    /// Say whether a request verifies, and if not, exactly why
    Verify(verify::Arguments),
    /// Look at stored events
    Events(events::Arguments),
    /// Write the manifest's sources and subscriptions to the database
    Apply(apply::Arguments),
    /// List the built-in signing kinds
    Kinds(kinds::Arguments),
}
