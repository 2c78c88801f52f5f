//! The destinations `sqs`, `eventbridge` and `lambda`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hookstead_aws::Aws;
use hookstead_aws::targets::{
    EventBridgeTarget, LambdaTarget, SqsTarget, Target, TargetFailure, TargetMessage,
};
use hookstead_domain::{Envelope, ErrorClass, Outcome};
use serde::Deserialize;
use serde_json::Value;

use crate::destination::{Answered, Attempt, AttemptFuture, Destination, Observed};

/// Most clients that are kept: making one takes longer than a call needs, and each
/// keeps a little memory. Beyond that all are made anew.
const MAX_CLIENTS: usize = 256;

/// Most characters of a failure's code and of a request id, as the database has them.
const MAX_CODE_CHARS: usize = 256;

/// Makes the target of a destination; `None` where its settings cannot be read.
type Make = fn(&Aws, &Value) -> Option<Arc<dyn Target>>;

/// A kind of destination within AWS.
pub struct AwsDestination {
    aws: Aws,
    make: Make,
    /// By the destination as it is written.
    targets: Mutex<HashMap<String, Arc<dyn Target>>>,
}

/// `{"kind":"sqs","queue_url":"https://sqs…"}`.
#[derive(Deserialize)]
struct Sqs {
    queue_url: String,
}

/// `{"kind":"eventbridge","bus":"name or ARN","source":"…"}`, the source being optional.
#[derive(Deserialize)]
struct EventBridge {
    bus: String,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    detail_type: Option<String>,
}

/// `{"kind":"lambda","function":"name or ARN"}`.
#[derive(Deserialize)]
struct Lambda {
    function: String,
}

impl AwsDestination {
    /// Queues.
    #[must_use]
    pub fn sqs(aws: Aws) -> Self {
        Self::new(aws, |aws, settings| {
            let settings = Sqs::deserialize(settings).ok()?;
            Some(Arc::new(SqsTarget::new(aws, settings.queue_url)))
        })
    }

    /// Event buses.
    #[must_use]
    pub fn eventbridge(aws: Aws) -> Self {
        Self::new(aws, |aws, settings| {
            let settings = EventBridge::deserialize(settings).ok()?;
            let target = EventBridgeTarget::new(aws, settings.bus, settings.source)
                .with_detail_type(settings.detail_type);
            Some(Arc::new(target))
        })
    }

    /// Functions, which are waited for.
    #[must_use]
    pub fn lambda(aws: Aws) -> Self {
        Self::new(aws, |aws, settings| {
            let settings = Lambda::deserialize(settings).ok()?;
            Some(Arc::new(LambdaTarget::new(aws, settings.function)))
        })
    }

    fn new(aws: Aws, make: Make) -> Self {
        Self {
            aws,
            make,
            targets: Mutex::default(),
        }
    }

    fn target(&self, destination: &Value) -> Option<Arc<dyn Target>> {
        let key = destination.to_string();
        // Only whole entries are ever put in.
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = targets.get(&key) {
            return Some(Arc::clone(target));
        }
        let target = (self.make)(&self.aws, destination)?;
        if targets.len() >= MAX_CLIENTS {
            targets.clear();
        }
        targets.insert(key, Arc::clone(&target));
        Some(target)
    }

    async fn send(&self, attempt: Attempt) -> Answered {
        let Some(target) = self.target(&attempt.subscription.destination) else {
            return Answered::failed(ErrorClass::InvalidDestination, "settings");
        };
        let event = &attempt.event;
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
        let attributes = envelope.attributes();
        let message = TargetMessage {
            attributes: &attributes,
            content_type: event.content_type.as_deref(),
            body: &event.raw_body,
        };
        let began = Instant::now();
        let sent = target.send(&message, attempt.time_limit).await;
        let latency_ms = u32::try_from(began.elapsed().as_millis()).ok();
        match sent {
            Ok(receipt) => Answered {
                outcome: Outcome::Success,
                observed: Observed {
                    latency_ms,
                    partner_request_id: bounded(receipt.request_id),
                    ..Observed::default()
                },
            },
            Err(failure) => failed(failure, latency_ms),
        }
    }
}

impl Destination for AwsDestination {
    fn attempt(&self, attempt: Attempt) -> AttemptFuture<'_> {
        Box::pin(self.send(attempt))
    }
}

fn failed(failure: TargetFailure, latency_ms: Option<u32>) -> Answered {
    Answered {
        outcome: Outcome::failed(failure.class, None),
        observed: Observed {
            latency_ms,
            detail: bounded(failure.detail),
            ..Observed::default()
        },
    }
}

fn bounded(code: String) -> Option<String> {
    let code: String = code.chars().take(MAX_CODE_CHARS).collect();
    Some(code).filter(|code| !code.is_empty())
}
