//! `hookstead deliveries list`.

use hookstead_domain::{DeliveryId, StateName};
use hookstead_store::{DeliveryFilter, DeliveryListing, list_deliveries};
use time::OffsetDateTime;

use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, dim, seconds_or_dash};
use crate::project::ProjectArguments;
use crate::{events, since, subscriptions};

/// List deliveries, those of the newest events first
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Only in this state: pending, leased, succeeded, skipped, dead_letter, cancelled; repeat for more
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<StateName>,
    /// Only those owed to this subscription
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
    /// Only those of this event; last stands for the newest one
    #[arg(long, value_name = "EVENT_ID")]
    event: Option<String>,
    /// Only of events received since: 15m, 2h, 3d, or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    since: Option<OffsetDateTime>,
    /// Only those before this one: the last id of the page before
    #[arg(long, value_name = "DELIVERY", value_parser = super::parse_id)]
    before: Option<DeliveryId>,
    /// Most deliveries to list
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn state(text: &str) -> Result<StateName, String> {
    StateName::from_code(text).ok_or_else(|| {
        let all = StateName::ALL.map(StateName::as_str);
        format!("a state is one of {}", all.join(", "))
    })
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let subscription = match &arguments.subscription {
        Some(name) => Some(
            subscriptions::find(&mut connection, name)
                .await?
                .subscription_id,
        ),
        None => None,
    };
    let event = match &arguments.event {
        Some(id) => Some(events::resolve(&mut connection, id).await?),
        None => None,
    };
    let filter = DeliveryFilter {
        states: arguments.state,
        subscription,
        event,
        since: arguments.since,
        before: arguments.before,
        limit: arguments.limit,
    };
    let deliveries = list_deliveries(&mut connection, &filter)
        .await
        .doing("cannot read the deliveries")?;
    if arguments.json {
        output::json(&deliveries)?;
    } else if deliveries.is_empty() {
        output::line(&dim("No deliveries."))?;
    } else {
        output::line(&table(&deliveries).render())?;
    }
    Ok(Exit::Yes)
}

fn table(deliveries: &[DeliveryListing]) -> Table {
    let mut table = Table::new([
        "DELIVERY",
        "SUBSCRIPTION",
        "TYPE",
        "STATE",
        "ATTEMPTS",
        "DUE OR ENDED",
        "WHY",
    ]);
    for listing in deliveries {
        let delivery = &listing.delivery;
        table.row([
            delivery.delivery_id.to_string().as_str(),
            delivery.subscription.as_deref().unwrap_or("(gone)"),
            listing.event_type.as_deref().unwrap_or("(gone)"),
            &delivery.state,
            &format!("{}/{}", delivery.attempt_count, delivery.attempt_budget),
            &seconds_or_dash(delivery.terminal_at.or(delivery.next_attempt_at)),
            &why(
                delivery.state_reason.as_deref(),
                delivery.last_error_class.as_deref(),
            ),
        ]);
    }
    table
}

/// The reason of a state and the class of the last failure, where there are any.
pub(crate) fn why(reason: Option<&str>, error_class: Option<&str>) -> String {
    match (reason, error_class) {
        (Some(reason), Some(class)) => format!("{reason}: {class}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "-".to_owned(),
    }
}
