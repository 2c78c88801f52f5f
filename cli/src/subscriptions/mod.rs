//! `hookstead subscriptions`: consumers one by one.

mod add;
mod list;
mod switch;
mod test;

use hookstead_store::{SubscriptionRecord, subscription_by_name};
use sqlx::postgres::PgConnection;

use crate::error::{Doing as _, Error, Exit};

/// Look at subscriptions, add one, try one, switch them off and on
///
/// Those of the manifest come by `hookstead apply`; one that is added here stays
/// beside them until the manifest names it.
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
    Add(Box<add::Arguments>),
    Test(test::Arguments),
    Disable(switch::DisableArguments),
    Enable(switch::EnableArguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    match arguments.what.unwrap_or(What::List(arguments.list)) {
        What::List(arguments) => list::run(arguments).await,
        What::Add(arguments) => add::run(*arguments).await,
        What::Test(arguments) => test::run(arguments).await,
        What::Disable(arguments) => switch::disable(arguments).await,
        What::Enable(arguments) => switch::enable(arguments).await,
    }
}

/// The subscription of this name. One that nobody has is a mistake of the caller's.
pub(crate) async fn find(
    connection: &mut PgConnection,
    name: &str,
) -> Result<SubscriptionRecord, Error> {
    let found = subscription_by_name(connection, name).await;
    found
        .doing("cannot read the subscriptions")?
        .ok_or_else(|| {
            let message = format!("there is no subscription \"{name}\" in the database");
            Error::usage("unknown_subscription", message)
        })
}
