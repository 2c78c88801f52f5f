//! `hookstead subscriptions list`.

use hookstead_store::{SubscriptionRecord, list_subscriptions};
use serde_json::{Value, json};
use time::OffsetDateTime;
use url::Url;

use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, dim, seconds};
use crate::project::ProjectArguments;

/// List subscriptions: where they go and how they do
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let mut subscriptions = list_subscriptions(&mut connection)
        .await
        .doing("cannot read the subscriptions")?;
    for subscription in &mut subscriptions {
        subscription.destination = shown(&subscription.destination);
    }
    if arguments.json {
        output::json(&subscriptions)?;
    } else if subscriptions.is_empty() {
        output::line(&dim("No subscriptions."))?;
    } else {
        output::line(&table(&subscriptions).render())?;
    }
    Ok(Exit::Yes)
}

/// A destination without what may be a secret: the query of its URL and the values of
/// its headers.
fn shown(destination: &Value) -> Value {
    let mut shown = destination.clone();
    if let Some(url) = destination["url"].as_str() {
        shown["url"] = json!(without_query(url));
    }
    if let Some(headers) = destination["headers"].as_object() {
        shown["headers"] = json!(headers.keys().collect::<Vec<_>>());
    }
    shown
}

fn without_query(url: &str) -> String {
    match url.parse::<Url>() {
        Ok(mut url) if url.query().is_some() => {
            url.set_query(None);
            format!("{url}?…")
        }
        Ok(url) => url.to_string(),
        // What cannot be taken apart is not shown in part.
        Err(_) => "(not a URL)".to_owned(),
    }
}

fn table(subscriptions: &[SubscriptionRecord]) -> Table {
    let mut table = Table::new([
        "NAME",
        "STATE",
        "FAILURES",
        "SOURCE",
        "TYPES",
        "DESTINATION",
        "SIGNED",
        "BY",
    ]);
    let now = OffsetDateTime::now_utc();
    for one in subscriptions {
        let types = match one.event_types.is_empty() {
            true => "*".to_owned(),
            false => one.event_types.join(", "),
        };
        table.row([
            one.name.as_str(),
            &state(one, now),
            &one.consecutive_failures.to_string(),
            one.source.as_deref().unwrap_or("*"),
            &types,
            &destination(&one.destination),
            if one.has_secret { "yes" } else { "no" },
            &one.managed_by,
        ]);
    }
    table
}

fn state(one: &SubscriptionRecord, now: OffsetDateTime) -> String {
    if let Some(since) = one.disabled_at {
        let reason = one.disabled_reason.as_deref().unwrap_or("no reason given");
        return format!("disabled since {}: {reason}", seconds(since));
    }
    match one.paused_until.filter(|until| *until > now) {
        Some(until) => format!("paused until {}", seconds(until)),
        None => "on".to_owned(),
    }
}

/// What a destination leads to, in one word or two.
fn destination(value: &Value) -> String {
    let member = |name: &str| value[name].as_str();
    let kind = member("kind").unwrap_or("?");
    let names = ["url", "name", "queue_url", "bus", "function"];
    match names.into_iter().find_map(member) {
        Some(place) => format!("{kind} {place}"),
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_header_values_are_not_shown() {
        let whole = json!({
            "kind": "http", "url": "https://h.example/x?token=CANARY",
            "headers": { "x-key": "CANARY" },
        });
        let shown = shown(&whole);
        assert!(!shown.to_string().contains("CANARY"), "{shown}");
        assert_eq!(destination(&shown), "http https://h.example/x?…");
        assert_eq!(shown["headers"], json!(["x-key"]));
        assert_eq!(destination(&json!({ "kind": "pull" })), "pull");
    }
}
