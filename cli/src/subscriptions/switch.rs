//! `hookstead subscriptions disable` and `enable`.

use hookstead_domain::ReasonCode;
use hookstead_store::{switch_subscription_off, switch_subscription_on};
use serde_json::json;

use super::find;
use crate::apply::actor;
use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, dim, good};
use crate::project::ProjectArguments;

/// Switch a subscription off: what waits for it is cancelled, and nothing more is owed to it
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct DisableArguments {
    /// The subscription
    #[arg(value_name = "NAME")]
    name: String,
    /// Why, as a code of a-z, 0-9 and _
    #[arg(long, value_name = "CODE", default_value = "operator", value_parser = reason)]
    reason: ReasonCode,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Switch a subscription on, with a clean record
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct EnableArguments {
    /// The subscription
    #[arg(value_name = "NAME")]
    name: String,
    /// Also deliver what was cancelled because it was off
    #[arg(long)]
    rearm: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn reason(text: &str) -> Result<ReasonCode, String> {
    text.parse::<ReasonCode>()
        .map_err(|error| error.to_string())
}

pub(super) async fn disable(arguments: DisableArguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let record = find(&mut connection, &arguments.name).await?;
    let reason = arguments.reason.as_str();
    let changed = switch_subscription_off(&mut connection, &record, reason, &actor())
        .await
        .doing("cannot switch the subscription off")?;
    if arguments.json {
        output::json(&json!({ "name": record.name, "enabled": false, "changed": changed }))?;
    } else if changed {
        output::line(&good(
            "It is off. What waits for it is cancelled and can be brought back.",
        ))?;
    } else {
        output::line(&dim("It was off already."))?;
    }
    Ok(Exit::Yes)
}

pub(super) async fn enable(arguments: EnableArguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let record = find(&mut connection, &arguments.name).await?;
    let rearmed = switch_subscription_on(&mut connection, &record, arguments.rearm, &actor())
        .await
        .doing("cannot switch the subscription on")?;
    let changed = record.disabled_at.is_some();
    if arguments.json {
        output::json(&json!({
            "name": record.name, "enabled": true, "changed": changed, "rearmed": rearmed,
        }))?;
        return Ok(Exit::Yes);
    }
    let state = if changed {
        good("It is on.")
    } else {
        dim("It was on already.")
    };
    output::line(&match arguments.rearm {
        true => format!("{state} {rearmed} deliveries begin anew."),
        false => state,
    })?;
    Ok(Exit::Yes)
}
