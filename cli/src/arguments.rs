//! The command line.

use clap::{Parser, Subcommand};

use crate::{
    apply, attempts, deliveries, dev, events, kinds, publish, report, send, sink, subscriptions,
    tail, verify,
};

/// Receive, verify, keep and deliver webhooks, and look at all of it.
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
    Publish(publish::Arguments),
    Events(events::Arguments),
    Deliveries(deliveries::Arguments),
    Attempts(attempts::Arguments),
    Tail(tail::Arguments),
    Apply(apply::Arguments),
    Subscriptions(subscriptions::Arguments),
    Report(report::Arguments),
    Sink(sink::Arguments),
    Kinds(kinds::Arguments),
}
