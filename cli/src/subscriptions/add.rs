//! `hookstead subscriptions add`.

use std::collections::BTreeMap;

use hookstead_domain::{EventTypePattern, SourceName};
use hookstead_egress::webhook::Mode;
use hookstead_store::{Added, DesiredSubscription, Secretless, StoreError, add_subscription};
use serde_json::json;

use crate::apply::actor;
use crate::database::{Database, Role};
use crate::error::{Doing as _, Error, Exit};
use crate::keys::{self, Issued};
use crate::manifest::{Destination, Http};
use crate::output::{self, good};
use crate::private;
use crate::project::{Project, ProjectArguments};

/// Add a subscription that posts to an address
///
/// Prints its signing secret, this once. Nothing of the manifest changes, and
/// `hookstead apply` leaves it alone until the manifest names it.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Its name: 1 to 64 of a-z, 0-9, - and _
    #[arg(value_name = "NAME", value_parser = name)]
    name: SourceName,
    /// Where to: https, unless --allow-http
    #[arg(long, value_name = "URL")]
    url: String,
    /// Let plain http through
    #[arg(long)]
    allow_http: bool,
    /// binary: the event's own bytes, or structured: one JSON document
    #[arg(long, value_name = "MODE", default_value = "binary")]
    mode: Mode,
    /// A header of your own, 'Name: value'; repeat for each
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
    /// Only events of this source
    #[arg(long, value_name = "NAME")]
    source: Option<SourceName>,
    /// Only events of this type; * stands for anything; repeat for more
    #[arg(long = "type", value_name = "PATTERN")]
    event_types: Vec<EventTypePattern>,
    /// Only events whose payload this SQL/JSON path lets through
    #[arg(long, value_name = "PATH")]
    filter: Option<String>,
    /// Only events of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Most deliveries per second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn name(text: &str) -> Result<SourceName, String> {
    let parsed = text.parse::<SourceName>();
    parsed.map_err(|error| {
        error
            .to_string()
            .replace("source name", "subscription name")
    })
}

fn header(text: &str) -> Result<(String, String), String> {
    // The text is not repeated: a value may be a secret.
    let parts = text.split_once(':');
    let (name, value) = parts.ok_or_else(|| "write a header as 'Name: value'".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let project = Project::of(&arguments.project)?;
    let database = Database::in_use(&project)?;
    let desired = desired(&arguments, &project)?;
    let sealer = keys::sealer(&project)?.ok_or_else(keys::no_key)?;
    let wanted = Secretless {
        name: desired.name.to_string(),
        subscription_id: None,
    };
    let mut connection = database.connect_as(Role::Admin).await?;
    let offer = keys::offers(&sealer, &[wanted])
        .await?
        .pop()
        .ok_or_else(keys::no_key)?;
    let added = add_subscription(&mut connection, &desired, Some(&offer.sealed), &actor()).await;
    let added = match added {
        Err(StoreError::Manifest(error)) => {
            return Err(Error::usage(error.code, error.to_string()));
        }
        added => added.doing("cannot add the subscription")?,
    };
    match added {
        Added::Yes(id) => print(&arguments, &id.to_string(), offer.into_issued())?,
        Added::NameTaken => {
            let message = format!(
                "another subscription is named \"{}\"",
                desired.name.as_str()
            );
            return Err(Error::Refused {
                code: "name_taken",
                message,
            });
        }
        Added::UnknownSource => {
            let source = desired.source.as_ref().map_or("", SourceName::as_str);
            let message =
                format!("there is no source \"{source}\" in the database, or it is disabled");
            return Err(Error::usage("unknown_source", message));
        }
    }
    Ok(Exit::Yes)
}

fn desired(arguments: &Arguments, project: &Project) -> Result<DesiredSubscription, Error> {
    let http = Http {
        url: arguments.url.clone(),
        mode: arguments.mode,
        allow_http: arguments.allow_http,
        headers: headers(&arguments.header)?,
    };
    http.check_url()
        .map_err(|problem| Error::usage("invalid_url", format!("--url {problem}")))?;
    if !http.is_allowed(&private::allowed(project)?) {
        let message = format!("--url {}", private::refusal());
        return Err(Error::usage("address_not_allowed", message));
    }
    if let Some((name, code, problem)) = http.bad_header() {
        return Err(Error::usage(code, format!("--header {name}: {problem}")));
    }
    Ok(DesiredSubscription {
        name: arguments.name.clone(),
        source: arguments.source.clone(),
        tenant: arguments.tenant.clone(),
        event_types: arguments.event_types.clone(),
        payload_filter: arguments.filter.clone(),
        destination: serde_json::to_value(Destination::Http(http)).unwrap_or_default(),
        retry_policy: None,
        schema_version: None,
        rate_limit_per_s: arguments.rate,
    })
}

fn headers(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Error> {
    let mut headers = BTreeMap::new();
    for (name, value) in given {
        if headers.insert(name.clone(), value.clone()).is_some() {
            let message = format!("--header {name} is there twice");
            return Err(Error::usage("duplicate_header", message));
        }
    }
    Ok(headers)
}

fn print(arguments: &Arguments, id: &str, issued: Issued) -> Result<(), Error> {
    if arguments.json {
        return output::json(&json!({
            "name": arguments.name, "subscription_id": id, "secrets": [issued],
        }));
    }
    output::line(&good("Added."))?;
    output::line(&format!("\n{}", keys::table(&[issued]).render()))
}
