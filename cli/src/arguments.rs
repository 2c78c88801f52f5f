//! The command line.

use clap::{Parser, Subcommand};

use crate::{apply, dev, events, kinds, send, sink, verify};

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

/// The commands; each describes itself where its arguments are.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(dev::Arguments),
    Send(send::Arguments),
    Verify(verify::Arguments),
    Events(events::Arguments),
    Apply(apply::Arguments),
    Kinds(kinds::Arguments),
    Sink(sink::Arguments),
}
