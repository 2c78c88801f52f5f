//! `hookstead deliveries`: what events owe subscriptions, and where that stands.

mod list;
mod show;

pub(crate) use list::why;

use hookstead_domain::DeliveryId;

use crate::error::{Error, Exit};

/// Look at deliveries
///
/// Lists them, those of the newest events first; `show` has the whole history of one.
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
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    match arguments.what.unwrap_or(What::List(arguments.list)) {
        What::List(arguments) => list::run(arguments).await,
        What::Show(arguments) => show::run(arguments).await,
    }
}

/// An id as an argument.
pub(crate) fn parse_id(text: &str) -> Result<DeliveryId, String> {
    text.parse()
        .map_err(|_| "a delivery id is a UUID, as `hookstead deliveries` shows it".to_owned())
}

pub(crate) fn not_found(id: DeliveryId) -> Error {
    Error::NotFound {
        code: "delivery_not_found",
        message: format!("there is no delivery {id}"),
    }
}
