//! `hookstead subscriptions test`.

use std::time::Duration;

use bytes::Bytes;
use hookstead_aws::keys::Sealer;
use hookstead_domain::{DeliveryId, Envelope, EventId, SourceName, Timestamp};
use hookstead_egress::webhook::{
    CustomHeaders, Mode, SigningSecrets, WebhookInput, WebhookRequest,
};
use hookstead_egress::{Answer, Egress, EgressSettings, OutgoingRequest, SendFailure};
use hookstead_signing::Secret;
use hookstead_store::{SealedSecrets, SubscriptionRecord, sealed_secrets};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::find;
use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, bad, dim, good, printable};
use crate::project::{Project, ProjectArguments};
use crate::{chance, keys, private};

/// The type of what is sent.
const EVENT_TYPE: &str = "hookstead.test";

/// Where it says that it comes from.
const SOURCE: &str = "hookstead";

/// Longest that a person waits, where the subscription's own timeout is longer.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Send a signed test event to a subscription's address, now
///
/// It is built, signed and sent as a delivery is, and kept nowhere. Exit status 0:
/// the answer is 200 to 299, 1: it is not, or there was none.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The subscription, of kind http
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let project = Project::of(&arguments.project)?;
    let mut connection = connect_to_look(&arguments.project).await?;
    let record = find(&mut connection, &arguments.name).await?;
    if record.destination["kind"] != "http" {
        let message = format!("subscription \"{}\" is not of kind http", record.name);
        return Err(Error::usage("cannot_test", message));
    }
    let sealed = sealed_secrets(&mut connection, record.subscription_id)
        .await
        .doing("cannot read the secret")?;
    let sealer = keys::sealer(&project)?.ok_or_else(keys::no_key)?;
    let secrets = open(&sealer, &record, sealed).await?;
    let request = request(&record, &secrets)?;
    let settings = EgressSettings {
        allowed: private::allowed(&project)?,
        ..EgressSettings::default()
    };
    let egress = Egress::new(settings)
        .map_err(|error| Error::usage("invalid_configuration", error.to_string()))?;
    let sent = egress.send(request).await;
    print(&sent, arguments.json)?;
    let accepted = sent.is_ok_and(|answer| (200..300).contains(&answer.status));
    Ok(if accepted { Exit::Yes } else { Exit::No })
}

struct Secrets {
    current: Secret,
    previous: Option<Secret>,
}

async fn open(
    sealer: &Sealer,
    record: &SubscriptionRecord,
    sealed: SealedSecrets,
) -> Result<Secrets, Error> {
    let id = record.subscription_id;
    let Some(current) = sealed.current else {
        let message = format!(
            "subscription \"{}\" has no signing secret; `hookstead apply` issues one",
            record.name
        );
        return Err(Error::usage("secret_missing", message));
    };
    let previous = match sealed.previous {
        Some(previous) => Some(keys::open(sealer, id, previous).await?),
        None => None,
    };
    let current = keys::open(sealer, id, current).await?;
    Ok(Secrets { current, previous })
}

fn request(record: &SubscriptionRecord, secrets: &Secrets) -> Result<OutgoingRequest, Error> {
    let now: Timestamp = OffsetDateTime::now_utc();
    let ms = u64::try_from(now.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
    let event_id = EventId::new(ms, chance::bytes()?);
    let source: SourceName = SOURCE.parse().expect("the name is one");
    let body = json!({ "test": true, "subscription": record.name }).to_string();
    let destination = &record.destination;
    let text = |name: &str| destination[name].as_str().unwrap_or_default().to_owned();
    let pairs = destination["headers"].as_object().into_iter().flatten();
    let pairs = pairs.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    let built = WebhookRequest::build(WebhookInput {
        envelope: &Envelope {
            event_id,
            source: &source,
            event_type: EVENT_TYPE,
            occurred_at: Some(now),
            received_at: now,
            schema_version: "1",
            tenant: record.tenant.as_deref(),
            cause_event_id: None,
        },
        delivery_id: DeliveryId::derive(event_id, record.subscription_id),
        attempt: 1,
        mode: text("mode").parse::<Mode>().unwrap_or_default(),
        content_type: Some("application/json"),
        body: &Bytes::from(body),
        custom_headers: &CustomHeaders::stored(pairs),
        secrets: SigningSecrets {
            current: &secrets.current,
            previous: secrets.previous.as_ref(),
        },
        now,
        traceparent: None,
    });
    let built = built.map_err(|error| Error::usage("cannot_sign", error.to_string()))?;
    let timeout_ms = record.retry_policy["timeout_ms"]
        .as_f64()
        .unwrap_or(f64::MAX);
    let deadline = Duration::try_from_secs_f64(timeout_ms / 1000.0).unwrap_or(MAX_WAIT);
    let allow_http = destination["allow_http"].as_bool().unwrap_or(false);
    Ok(built.to(text("url"), deadline.min(MAX_WAIT), allow_http))
}

fn print(sent: &Result<Answer, SendFailure>, as_json: bool) -> Result<(), Error> {
    if as_json {
        return output::json(&as_value(sent));
    }
    match sent {
        Ok(answer) => {
            let accepted = (200..300).contains(&answer.status);
            let status = answer.status.to_string();
            let status = if accepted {
                good(&status)
            } else {
                bad(&status)
            };
            output::line(&format!("{status}  {} ms", answer.latency_ms))?;
            let body = printable(&String::from_utf8_lossy(&answer.body_prefix));
            if body.is_empty() {
                Ok(())
            } else {
                output::line(&dim(&body))
            }
        }
        Err(failure) => {
            let class = failure.class.as_str();
            let line = format!("{class}: {}  {} ms", failure.detail, failure.latency_ms);
            output::line(&bad(&line))
        }
    }
}

fn as_value(sent: &Result<Answer, SendFailure>) -> Value {
    match sent {
        Ok(answer) => json!({
            "status": answer.status, "latency_ms": answer.latency_ms, "error_class": null,
            "detail": null, "body": String::from_utf8_lossy(&answer.body_prefix),
        }),
        Err(failure) => json!({
            "status": failure.status, "latency_ms": failure.latency_ms,
            "error_class": failure.class.as_str(), "detail": failure.detail, "body": null,
        }),
    }
}
