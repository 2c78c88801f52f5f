//! The destination `http`: a signed POST.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hookstead_domain::{Envelope, ErrorClass, Outcome};
use hookstead_egress::webhook::{
    CustomHeaders, Mode, SigningSecrets, WebhookInput, WebhookRequest,
};
use hookstead_egress::{Answer, Egress, OutgoingRequest, SendFailure};
use hookstead_signing::Secret;
use hookstead_store::delivering::ClaimedSubscription;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::secrets::{OpenSecrets, SecretUnavailable};
use crate::attempt::Refused;
use crate::clock::DatabaseClock;
use crate::destination::{Answered, Attempt, AttemptFuture, Destination, Observed};

/// Delivers by a signed POST through the guarded client.
pub struct HttpDestination {
    egress: Egress,
    secrets: Arc<dyn OpenSecrets>,
}

/// `{"kind":"http","url":"https://…","mode":"binary","allow_http":false,"headers":{…}}`.
/// Keys that came later are ignored.
#[derive(Deserialize)]
struct Settings {
    url: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    allow_http: bool,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl HttpDestination {
    /// Through this client, with secrets that this opens.
    #[must_use]
    pub fn new(egress: Egress, secrets: Arc<dyn OpenSecrets>) -> Self {
        Self { egress, secrets }
    }

    async fn send(&self, attempt: Attempt) -> Answered {
        let deadline = Instant::now() + attempt.time_limit;
        let Ok(settings) = Settings::deserialize(&attempt.subscription.destination) else {
            return Answered::failed(ErrorClass::InvalidDestination, "settings");
        };
        let opening = self.open(&attempt.subscription, attempt.clock);
        let secrets = match timeout_at(deadline, opening).await {
            Ok(Ok(secrets)) => secrets,
            Ok(Err(unavailable)) => return secret_unavailable(&unavailable.code),
            Err(_) => return secret_unavailable("timeout"),
        };
        let clock = attempt.clock;
        let request = match request(attempt, settings, &secrets, deadline) {
            Ok(request) => request,
            Err(refused) => return refused.into(),
        };
        match self.egress.send(request).await {
            Ok(answer) => answered(answer, clock),
            Err(failure) => failed(&failure),
        }
    }

    async fn open(
        &self,
        subscription: &ClaimedSubscription,
        clock: DatabaseClock,
    ) -> Result<Secrets, SecretUnavailable> {
        let id = subscription.subscription_id;
        let current = subscription.secret_current.as_ref();
        let current = current.ok_or_else(|| SecretUnavailable::new("no_secret"))?;
        let overlaps = subscription
            .previous_until
            .is_some_and(|until| clock.now() < until);
        let previous = subscription.secret_previous.as_ref().filter(|_| overlaps);
        let previous = match previous {
            Some(previous) => Some(self.secrets.open(previous, id).await?),
            None => None,
        };
        Ok(Secrets {
            current: self.secrets.open(current, id).await?,
            previous,
        })
    }
}

/// The secrets that are live.
struct Secrets {
    current: Secret,
    previous: Option<Secret>,
}

impl Destination for HttpDestination {
    fn attempt(&self, attempt: Attempt) -> AttemptFuture<'_> {
        Box::pin(self.send(attempt))
    }
}

fn secret_unavailable(code: &str) -> Answered {
    Answered::failed(ErrorClass::SecretUnavailable, code)
}

fn request(
    attempt: Attempt,
    settings: Settings,
    secrets: &Secrets,
    deadline: Instant,
) -> Result<OutgoingRequest, Refused> {
    let traceparent = traceparent(&attempt);
    let event = attempt.event;
    let body = Bytes::from(event.raw_body);
    let envelope = Envelope {
        event_id: event.event_id,
        source: &event.source_name,
        event_type: &event.event_type,
        occurred_at: event.occurred_at,
        received_at: event.received_at,
        schema_version: &event.schema_version,
        tenant: event.tenant.as_deref(),
        cause_event_id: event.cause_event_id,
    };
    let webhook = WebhookRequest::build(WebhookInput {
        envelope: &envelope,
        delivery_id: attempt.delivery_id,
        attempt: attempt.number,
        mode: settings.mode,
        content_type: event.content_type.as_deref(),
        body: &body,
        custom_headers: &CustomHeaders::stored(&settings.headers),
        secrets: SigningSecrets {
            current: &secrets.current,
            previous: secrets.previous.as_ref(),
        },
        now: attempt.clock.now(),
        traceparent: Some(&traceparent),
    });
    let webhook = webhook.map_err(|error| Refused(error.class(), "webhook"))?;
    let left = deadline.saturating_duration_since(Instant::now());
    Ok(webhook.to(settings.url, left, settings.allow_http))
}

/// One trace per event, one span per attempt: the event's id, and the beginning of the
/// lease's, which is random.
fn traceparent(attempt: &Attempt) -> String {
    let trace = attempt.event.event_id.as_uuid().simple();
    let lease = attempt.lease_id.as_uuid().simple().to_string();
    format!("00-{trace}-{}-01", &lease[..16])
}

fn answered(answer: Answer, clock: DatabaseClock) -> Answered {
    Answered {
        outcome: answer.outcome(clock.now()),
        observed: Observed {
            latency_ms: Some(answer.latency_ms),
            status_code: answer.recorded_status(),
            detail: None,
            response_sha256: Some(answer.body_sha256),
            response_headers: serde_json::to_value(&answer.headers).ok(),
            partner_request_id: answer.partner_request_id,
        },
    }
}

fn failed(failure: &SendFailure) -> Answered {
    Answered {
        outcome: Outcome::failed(failure.class, None),
        observed: Observed {
            latency_ms: Some(failure.latency_ms),
            status_code: failure.status,
            detail: Some(failure.detail.to_owned()),
            ..Observed::default()
        },
    }
}
