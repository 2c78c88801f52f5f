//! `hookstead report`: what the control plane is told.

use hookstead_domain::{DeliveryId, Report};
use hookstead_store::relaying::{pending_reports, reports_of};
use hookstead_store::show_delivery;
use sqlx::postgres::PgConnection;

use crate::database::connect_to_look;
use crate::deliveries;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, dim};
use crate::project::ProjectArguments;

/// See what the control plane is told
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Show(ShowArguments),
}

/// Print reports exactly as they are sent: one line of JSON each
///
/// With a delivery, its reports whether or not they were sent; without, those that
/// still wait.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct ShowArguments {
    /// The delivery
    #[arg(value_name = "DELIVERY", value_parser = deliveries::parse_id, conflicts_with = "pending")]
    id: Option<DeliveryId>,
    /// Those that still wait, which is what no delivery means as well
    #[arg(long)]
    pending: bool,
    /// Most reports that wait to print
    #[arg(long, default_value_t = 1000, conflicts_with = "id",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as one JSON array, indented, instead of the bytes that are sent
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let What::Show(arguments) = arguments.what;
    let mut connection = connect_to_look(&arguments.project).await?;
    let reports = match arguments.id {
        Some(id) => of_delivery(&mut connection, id).await?,
        None => pending_reports(&mut connection, arguments.limit)
            .await
            .doing("cannot read the reports")?,
    };
    if arguments.json {
        output::json(&reports)?;
    } else {
        output::write(&as_sent(&reports)?)?;
        if reports.is_empty() {
            eprintln!("{}", dim("No reports."));
        }
    }
    Ok(Exit::Yes)
}

async fn of_delivery(connection: &mut PgConnection, id: DeliveryId) -> Result<Vec<Report>, Error> {
    let reports = reports_of(connection, id)
        .await
        .doing("cannot read the reports")?;
    if reports.is_empty() {
        let delivery = show_delivery(connection, id).await;
        if delivery.doing("cannot read the delivery")?.is_none() {
            return Err(deliveries::not_found(id));
        }
    }
    Ok(reports)
}

/// The body of a shipment: each report and a line end.
fn as_sent(reports: &[Report]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    for report in reports {
        serde_json::to_writer(&mut bytes, report)
            .map_err(std::io::Error::other)
            .doing("cannot write a report as JSON")?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}
