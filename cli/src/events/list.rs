//! `hookstead events list`.

use hookstead_domain::{EventId, SourceName};
use hookstead_store::{EventFilter, EventSummary, list_events, source_by_name};
use time::OffsetDateTime;

use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, dim, seconds};
use crate::project::ProjectArguments;
use crate::since;

/// Longest key that a line of the table shows; `show` and --json have all of it.
const SHOWN_KEY_CHARS: usize = 48;

/// List events, newest first
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Only events of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only events of this type; * stands for anything
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    /// Only events received since: 15m, 2h, 3d, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    since: Option<OffsetDateTime>,
    /// Only events before this one: the last id of the page before
    #[arg(long, value_name = "EVENT_ID")]
    before: Option<EventId>,
    /// Most events to list
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let filter = EventFilter {
        source: arguments.source,
        event_type: arguments.event_type,
        since: arguments.since,
        before: arguments.before,
        limit: arguments.limit,
    };
    let events = list_events(&mut connection, &filter)
        .await
        .doing("cannot read the events")?;
    // An empty list is an answer; a name that nobody has is a mistake.
    if let (Some(name), true) = (&filter.source, events.is_empty()) {
        let source = match name.parse::<SourceName>() {
            Ok(name) => source_by_name(&mut connection, &name)
                .await
                .doing("cannot read the sources")?,
            Err(_) => None,
        };
        if source.is_none() {
            let message = format!("there is no source \"{name}\" in the database");
            return Err(Error::usage("unknown_source", message));
        }
    }
    if arguments.json {
        output::json(&events)?;
    } else if events.is_empty() {
        output::line(&dim("No events."))?;
    } else {
        output::line(&table(&events).render())?;
    }
    Ok(Exit::Yes)
}

fn table(events: &[EventSummary]) -> Table {
    let mut table = Table::new([
        "EVENT", "RECEIVED", "SOURCE", "TYPE", "KEY", "BYTES", "VERIFIED",
    ]);
    for event in events {
        table.row([
            event.event_id.to_string().as_str(),
            &seconds(event.received_at),
            event.source.as_deref().unwrap_or("(gone)"),
            &event.event_type,
            &shortened(&event.external_event_id),
            &event.body_bytes.to_string(),
            if event.signature_verified {
                "yes"
            } else {
                "no"
            },
        ]);
    }
    table
}

fn shortened(key: &str) -> String {
    if key.chars().count() <= SHOWN_KEY_CHARS {
        return key.to_owned();
    }
    let kept: String = key.chars().take(SHOWN_KEY_CHARS - 1).collect();
    format!("{kept}…")
}
