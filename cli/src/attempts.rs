//! `hookstead attempts`: every try of one delivery.

use hookstead_domain::DeliveryId;
use hookstead_store::{AttemptRecord, attempts_of, show_delivery};

use crate::database::connect_to_look;
use crate::deliveries;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, Table, clock, dim, seconds};
use crate::project::ProjectArguments;

/// List every attempt of a delivery, oldest first
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The delivery
    #[arg(value_name = "DELIVERY", value_parser = deliveries::parse_id)]
    id: DeliveryId,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON, with the headers that were kept of each answer
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let attempts = attempts_of(&mut connection, arguments.id)
        .await
        .doing("cannot read the attempts")?;
    if attempts.is_empty() {
        // None is an answer; a delivery that is not there is none.
        let delivery = show_delivery(&mut connection, arguments.id).await;
        if delivery.doing("cannot read the delivery")?.is_none() {
            return Err(deliveries::not_found(arguments.id));
        }
    }
    if arguments.json {
        output::json(&attempts)?;
    } else if attempts.is_empty() {
        output::line(&dim("No attempts yet."))?;
    } else {
        output::line(&table(&attempts).render())?;
    }
    Ok(Exit::Yes)
}

/// One row for each attempt.
pub(crate) fn table(attempts: &[AttemptRecord]) -> Table {
    let mut table = Table::new([
        "ROUND",
        "ATTEMPT",
        "BEGAN",
        "ENDED",
        "OUTCOME",
        "STATUS",
        "TOOK",
        "ERROR",
        "REQUEST ID",
    ]);
    for attempt in attempts {
        let error = match (&attempt.error_class, &attempt.error_detail) {
            (Some(class), Some(detail)) => format!("{class}: {detail}"),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => "-".to_owned(),
        };
        table.row([
            attempt.round.to_string(),
            attempt.attempt_number.to_string(),
            seconds(attempt.started_at),
            clock(attempt.ended_at),
            attempt.outcome.clone(),
            number(attempt.status_code),
            attempt
                .latency_ms
                .map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
            error,
            attempt
                .partner_request_id
                .clone()
                .unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

fn number(value: Option<i32>) -> String {
    value.map_or_else(|| "-".to_owned(), |number| number.to_string())
}
