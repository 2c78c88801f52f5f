//! `hookstead publish`: announce an event, as an application does from SQL.

use std::path::PathBuf;

use hookstead_domain::EventId;
use hookstead_store::StoreError;
use hookstead_store::relaying::{PublishRefusal, PublishRequest, publish};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::chance;
use crate::database::{Database, Role};
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, good, printable};
use crate::project::{Project, ProjectArguments};
use crate::since;

/// What is published where nothing is given.
const EMPTY: &str = "{}";

/// Publish an event of your own
///
/// Calls the SQL function that applications call in their own transactions, with the
/// right to do nothing else. Exit status 1: refused, with the function's own code.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The event's type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// The source, of kind outbox
    #[arg(long, value_name = "NAME", default_value = "app")]
    source: String,
    /// The payload, as JSON; without it or --file an empty object
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    data: Option<String>,
    /// Publish the bytes of this file; - reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What the bytes of --file are
    #[arg(
        long,
        value_name = "TYPE",
        requires = "file",
        default_value = "application/json"
    )]
    content_type: String,
    /// Your own key of the event: with the same key it is the same event
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Whose event it is
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// What it is about: kind and id
    #[arg(long, value_name = "KIND/ID", value_parser = aggregate)]
    about: Option<(String, String)>,
    /// When it happened: 15m, 2h, 3d ago, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    occurred: Option<OffsetDateTime>,
    /// The event that led to it
    #[arg(long, value_name = "EVENT_ID")]
    cause: Option<EventId>,
    /// The version of its schema; without it, the source's
    #[arg(long, value_name = "VERSION")]
    schema_version: Option<String>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn aggregate(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('/');
    let parts = parts.filter(|(kind, id)| !kind.is_empty() && !id.is_empty());
    let (kind, id) = parts.ok_or_else(|| "write KIND/ID, such as order/1042".to_owned())?;
    Ok((kind.to_owned(), id.to_owned()))
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let body = body(&arguments)?;
    let project = Project::of(&arguments.project)?;
    let database = Database::in_use(&project)?;
    let key = match &arguments.key {
        Some(key) => key.clone(),
        None => chance::id("cli_")?,
    };
    let mut connection = database.connect_as(Role::Publisher).await?;
    let about = arguments.about.as_ref();
    let request = PublishRequest {
        event_type: &arguments.event_type,
        body: &body,
        content_type: &arguments.content_type,
        source: &arguments.source,
        aggregate: about.map(|(kind, id)| (kind.as_str(), id.as_str())),
        tenant: arguments.tenant.as_deref(),
        idempotency_key: &key,
        occurred_at: arguments.occurred,
        cause_event_id: arguments.cause,
        schema_version: arguments.schema_version.as_deref(),
    };
    let published = publish(&mut connection, &request).await;
    let outbox_id = published.or_else(|error| Err(refusal(error, &arguments)?))?;
    print(&arguments, outbox_id, &key, body.len())?;
    Ok(Exit::Yes)
}

fn body(arguments: &Arguments) -> Result<Vec<u8>, Error> {
    if let Some(path) = &arguments.file {
        return crate::verify::read_file(path);
    }
    let text = arguments.data.as_deref().unwrap_or(EMPTY);
    if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(text) {
        // Where it ends to be JSON, and nothing of what it says.
        let (line, column) = (error.line(), error.column());
        let message = format!("--data is not JSON, at line {line}, column {column}");
        return Err(Error::usage("invalid_json", message));
    }
    Ok(text.as_bytes().to_vec())
}

/// What the function refused, by its own code; anything else as it is.
fn refusal(error: StoreError, arguments: &Arguments) -> Result<Error, Error> {
    let Some(refusal) = PublishRefusal::of(&error) else {
        return Err::<Error, StoreError>(error).doing("cannot publish");
    };
    let source = &arguments.source;
    let message = match refusal {
        PublishRefusal::UnknownSource => format!(
            "there is no source \"{source}\": add one of kind \"outbox\" to the manifest and run `hookstead apply`"
        ),
        PublishRefusal::SourceDisabled => format!("source \"{source}\" is switched off"),
        PublishRefusal::NotAnOutboxSource => {
            format!("source \"{source}\" is not of kind \"outbox\": its events come by HTTP")
        }
        PublishRefusal::ReservedSource => {
            format!("source \"{source}\" is Hookstead's own; nobody else publishes to it")
        }
        PublishRefusal::EventTypeNotAllowed => format!(
            "source \"{source}\" does not take events of type \"{}\"",
            arguments.event_type
        ),
        PublishRefusal::RetiredSchemaVersion => {
            format!("source \"{source}\" does not write this schema version any more")
        }
        PublishRefusal::TenantNotAllowed => format!("source \"{source}\" is another tenant's"),
        PublishRefusal::BodyTooLarge => "the payload is larger than 4 MiB".to_owned(),
        _ => "a value is blank, too long or out of range; docs/outbox.md has the limits".to_owned(),
    };
    Ok(Error::Refused {
        code: refusal.code(),
        message: printable(&message),
    })
}

fn print(arguments: &Arguments, outbox_id: Uuid, key: &str, bytes: usize) -> Result<(), Error> {
    let (event_type, source) = (&arguments.event_type, &arguments.source);
    if arguments.json {
        return output::json(&json!({
            "outbox_id": outbox_id, "source": source, "type": event_type, "key": key,
            "bytes": bytes,
        }));
    }
    let facts = format!("{event_type}  from {source}  key {key}  {bytes} bytes");
    output::line(&format!("{}  {}", good("Published"), printable(&facts)))
}
