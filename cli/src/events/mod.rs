//! `hookstead events`: what arrived.

mod list;
mod pull;
mod show;

use hookstead_domain::EventId;
use hookstead_store::{EventFilter, list_events};
use sqlx::postgres::PgConnection;

use crate::error::{Doing as _, Error, Exit};

/// The word for the newest event.
const LAST: &str = "last";

/// Look at stored events
///
/// Lists them, newest first; `show` and `pull` look at one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    list: list::Arguments,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    List(list::Arguments),
    Show(show::Arguments),
    Pull(pull::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    match arguments.what.unwrap_or(What::List(arguments.list)) {
        What::List(arguments) => list::run(arguments).await,
        What::Show(arguments) => show::run(arguments).await,
        What::Pull(arguments) => pull::run(arguments).await,
    }
}

/// The event that is meant by an id or by `last`.
pub(crate) async fn resolve(connection: &mut PgConnection, id: &str) -> Result<EventId, Error> {
    if id == LAST {
        let filter = EventFilter {
            limit: 1,
            ..EventFilter::default()
        };
        let newest = list_events(connection, &filter)
            .await
            .doing("cannot read the events")?;
        let newest = newest.first().map(|event| event.event_id);
        return newest.ok_or_else(|| not_found("there are no events yet".to_owned()));
    }
    id.parse().map_err(|_| {
        Error::usage(
            "invalid_event_id",
            "an event id is a UUID, as `hookstead events` shows it, or the word last",
        )
    })
}

fn not_found(message: String) -> Error {
    Error::NotFound {
        code: "event_not_found",
        message,
    }
}
