//! `hookstead deliveries show`.

use hookstead_domain::DeliveryId;
use hookstead_store::{DeliveryDetail, DeliveryRound, show_delivery};

use super::list::why;
use crate::attempts;
use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, dim, printable, seconds, seconds_or_dash};
use crate::project::ProjectArguments;

/// Show one delivery: where it stands, its rounds, its attempts
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The delivery
    #[arg(value_name = "DELIVERY", value_parser = super::parse_id)]
    id: DeliveryId,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let delivery = show_delivery(&mut connection, arguments.id)
        .await
        .doing("cannot read the delivery")?
        .ok_or_else(|| super::not_found(arguments.id))?;
    if arguments.json {
        output::json(&delivery)?;
    } else {
        print(&delivery)?;
    }
    Ok(Exit::Yes)
}

fn print(delivery: &DeliveryDetail) -> Result<(), Error> {
    let or_gone = |text: &Option<String>| text.clone().unwrap_or_else(|| "(gone)".to_owned());
    let kind = delivery.destination_kind.as_deref().unwrap_or("-");
    let mut facts = vec![
        ("delivery", delivery.delivery_id.to_string()),
        ("event", delivery.event_id.to_string()),
        ("type", or_gone(&delivery.event_type)),
        ("source", or_gone(&delivery.source)),
        ("received", seconds_or_dash(delivery.received_at)),
        (
            "subscription",
            format!("{} ({kind})", or_gone(&delivery.subscription)),
        ),
    ];
    if let Some(at) = delivery.disabled_at {
        facts.push(("", format!("disabled since {}", seconds(at))));
    } else if let Some(at) = delivery.paused_until {
        facts.push(("", format!("paused until {}", seconds(at))));
    }
    facts.push((
        "stands",
        delivery.rounds.last().map_or_else(String::new, stands),
    ));
    for (name, value) in facts {
        output::line(&format!("{name:<16}{}", printable(&value)))?;
    }
    output::line(&format!("\n{}", rounds(&delivery.rounds).render()))?;
    if delivery.attempts.is_empty() {
        return output::line(&dim("No attempts yet."));
    }
    output::line(&format!(
        "\n{}",
        attempts::table(&delivery.attempts).render()
    ))
}

/// One sentence about a round.
fn stands(round: &DeliveryRound) -> String {
    let state = &round.state;
    if let Some(at) = round.next_attempt_at {
        let queued = if round.scheduled_at.is_some() {
            ", in the queue"
        } else {
            ""
        };
        return format!("{state}, due {}{queued}", seconds(at));
    }
    if let (Some(until), Some(worker)) = (round.lease_expires_at, &round.leased_by) {
        return format!("{state} by {worker} until {}", seconds(until));
    }
    let since = round
        .terminal_at
        .map_or_else(String::new, |at| format!(" since {}", seconds(at)));
    match &round.state_reason {
        Some(reason) => format!("{state}{since}: {reason}"),
        None => format!("{state}{since}"),
    }
}

fn rounds(rounds: &[DeliveryRound]) -> Table {
    let mut table = Table::new(["ROUND", "STATE", "ATTEMPTS", "BEGAN", "ENDED", "WHY"]);
    for round in rounds {
        table.row([
            round.round.to_string(),
            round.state.clone(),
            format!("{}/{}", round.attempt_count, round.attempt_budget),
            seconds(round.created_at),
            seconds_or_dash(round.terminal_at),
            why(
                round.state_reason.as_deref(),
                round.last_error_class.as_deref(),
            ),
        ]);
    }
    table
}
