//! `hookstead events show`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookstead_store::{DeliverySummary, EventDetail, pull_event, show_event};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::database::connect_to_look;
use crate::deliveries::why;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, bold, dim, printable, seconds, seconds_or_dash};
use crate::project::ProjectArguments;

/// Show one event: times, headers, deliveries
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The event, or the word last
    #[arg(value_name = "EVENT_ID")]
    id: String,
    /// Also show the body and the values of the headers
    #[arg(long)]
    payload: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let id = super::resolve(&mut connection, &arguments.id).await?;
    let event = show_event(&mut connection, id)
        .await
        .doing("cannot read the event")?;
    let event = event.ok_or_else(|| super::not_found(format!("there is no event {id}")))?;
    let body = if arguments.payload {
        pull_event(&mut connection, id)
            .await
            .doing("cannot read the event")?
    } else {
        None
    };
    if arguments.json {
        output::json(&as_json(&event, body.as_deref())?)?;
    } else {
        print(&event, body.as_deref())?;
    }
    Ok(Exit::Yes)
}

/// Header values come with the payload only: they may say as much as the body.
fn as_json(event: &EventDetail, body: Option<&[u8]>) -> Result<Value, Error> {
    let mut value = serde_json::to_value(event)
        .map_err(std::io::Error::other)
        .doing("cannot write the event as JSON")?;
    let Some(body) = body else {
        value["headers"] = json!(header_names(event));
        return Ok(value);
    };
    match std::str::from_utf8(body) {
        Ok(text) => value["body"] = json!(text),
        Err(_) => value["body_base64"] = json!(STANDARD.encode(body)),
    }
    Ok(value)
}

fn header_names(event: &EventDetail) -> Vec<&str> {
    let headers = event.headers.as_object();
    headers
        .into_iter()
        .flat_map(|headers| headers.keys())
        .map(String::as_str)
        .collect()
}

fn print(event: &EventDetail, body: Option<&[u8]>) -> Result<(), Error> {
    let summary = &event.summary;
    let time = |at: Option<OffsetDateTime>| at.map_or_else(|| "-".to_owned(), seconds);
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let verified = match &event.verified_with {
        Some(label) => format!("yes, with {label}"),
        None if summary.signature_verified => "yes".to_owned(),
        None => "no".to_owned(),
    };
    let facts = [
        ("event", summary.event_id.to_string()),
        ("source", or_dash(&summary.source)),
        ("type", summary.event_type.clone()),
        ("key", summary.external_event_id.clone()),
        ("received", seconds(summary.received_at)),
        ("occurred", time(summary.occurred_at)),
        ("verified", verified),
        ("content type", or_dash(&event.content_type)),
        (
            "body",
            format!(
                "{} bytes, SHA-256 {}",
                summary.body_bytes, event.body_sha256
            ),
        ),
        (
            "payload",
            match &summary.payload_error {
                Some(code) => format!("not parsed: {code}"),
                None => "parsed".to_owned(),
            },
        ),
        ("schema version", event.schema_version.clone()),
        ("tenant", or_dash(&summary.tenant)),
        ("region", or_dash(&event.region)),
    ];
    for (name, value) in facts {
        output::line(&format!("{name:<16}{}", printable(&value)))?;
    }
    print_headers(event, body.is_some())?;
    print_deliveries(&event.deliveries)?;
    if let Some(body) = body {
        output::line(&format!("\n{}", bold("body")))?;
        output::write(body)?;
        output::line("")?;
    }
    Ok(())
}

fn print_headers(event: &EventDetail, with_values: bool) -> Result<(), Error> {
    let names = header_names(event);
    if !with_values {
        return output::line(&format!(
            "{:<16}{}",
            "headers",
            printable(&names.join(", "))
        ));
    }
    output::line(&format!("\n{}", bold("headers")))?;
    for name in names {
        let values = match &event.headers[name] {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            let value = value.as_str().unwrap_or_default();
            output::line(&printable(&format!("{name}: {value}")))?;
        }
    }
    Ok(())
}

fn print_deliveries(deliveries: &[DeliverySummary]) -> Result<(), Error> {
    if deliveries.is_empty() {
        return output::line(&dim("No subscription takes this event."));
    }
    let mut table = Table::new([
        "DELIVERY",
        "SUBSCRIPTION",
        "STATE",
        "ATTEMPTS",
        "DUE OR ENDED",
        "WHY",
    ]);
    for delivery in deliveries {
        table.row([
            delivery.delivery_id.to_string().as_str(),
            delivery.subscription.as_deref().unwrap_or("(gone)"),
            &delivery.state,
            &format!("{}/{}", delivery.attempt_count, delivery.attempt_budget),
            &seconds_or_dash(delivery.terminal_at.or(delivery.next_attempt_at)),
            &why(
                delivery.state_reason.as_deref(),
                delivery.last_error_class.as_deref(),
            ),
        ]);
    }
    output::line(&format!("\n{}", table.render()))
}
