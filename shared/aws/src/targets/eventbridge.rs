//! Event buses of EventBridge.

use std::fmt;
use std::time::Duration;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::Builder;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};

use super::{Target, TargetFailure, TargetFuture, TargetMessage, TargetReceipt, structured};
use crate::Aws;
use crate::call::FailureKind;
use crate::client::timeouts;

/// Bytes of one entry, its source, type and detail together: EventBridge's limit since
/// 2026, 1 MiB.
pub const MAX_ENTRY_BYTES: usize = 1_048_576;

/// Bytes of the detail type: EventBridge's limit.
pub const MAX_DETAIL_TYPE_BYTES: usize = 128;

/// What EventBridge counts for the time of an entry. None is sent; it is counted so
/// that the limit is never passed by a few bytes.
const TIME_BYTES: usize = 14;

/// An event bus, by name or ARN.
///
/// The entry's `detail` is what [`structured`] makes, its `detail-type` the event's type,
/// its `source` the one given here, or `hookstead.SOURCE` after the event's source.
#[derive(Clone)]
pub struct EventBridgeTarget {
    client: Client,
    bus: String,
    source: Option<String>,
    detail_type: Option<String>,
}

impl EventBridgeTarget {
    /// The bus. Nothing is called yet.
    #[must_use]
    pub fn new(aws: &Aws, bus: impl Into<String>, source: Option<String>) -> Self {
        Self {
            client: Client::new(aws.tried_once().config()),
            bus: bus.into(),
            source,
            detail_type: None,
        }
    }

    /// The same, with one type for all entries in place of each event's own.
    #[must_use]
    pub fn with_detail_type(self, detail_type: Option<String>) -> Self {
        Self {
            detail_type,
            ..self
        }
    }

    async fn send_within(
        &self,
        message: &TargetMessage<'_>,
        timeout: Duration,
    ) -> Result<TargetReceipt, TargetFailure> {
        let entry = self.entry(message)?;
        let limits = Builder::new().timeout_config(timeouts(timeout, timeout));
        let call = self.client.put_events().entries(entry).customize();
        match call.config_override(limits).send().await {
            // The answer is 200 also where the entry was refused.
            Ok(answer) => match answer.entries() {
                [entry] => receipt(entry),
                _ => Err(TargetFailure::invalid_answer()),
            },
            Err(error) => Err(TargetFailure::of_call(&error)),
        }
    }

    fn entry(&self, message: &TargetMessage<'_>) -> Result<PutEventsRequestEntry, TargetFailure> {
        let own = || message.attribute("type").unwrap_or_default();
        let detail_type = self.detail_type.as_deref().unwrap_or_else(own);
        if detail_type.len() > MAX_DETAIL_TYPE_BYTES {
            return Err(TargetFailure::refused("detail_type_too_long"));
        }
        let source = self.source(message);
        let detail = structured(message);
        if source.len() + detail_type.len() + detail.len() + TIME_BYTES > MAX_ENTRY_BYTES {
            return Err(TargetFailure::refused("message_too_large"));
        }
        Ok(PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(source)
            .detail_type(detail_type)
            .detail(detail)
            .build())
    }

    fn source(&self, message: &TargetMessage<'_>) -> String {
        match &self.source {
            Some(source) => source.clone(),
            None => {
                let source = message.attribute("source").unwrap_or_default();
                let name = source.rsplit('/').next().unwrap_or_default();
                format!("hookstead.{name}")
            }
        }
    }
}

fn receipt(entry: &PutEventsResultEntry) -> Result<TargetReceipt, TargetFailure> {
    if let Some(code) = entry.error_code() {
        let kind = FailureKind::of_code(code, false);
        return Err(TargetFailure::of_kind(kind, code));
    }
    let event_id = entry.event_id().ok_or_else(TargetFailure::invalid_answer)?;
    Ok(TargetReceipt {
        request_id: event_id.to_owned(),
    })
}

impl fmt::Debug for EventBridgeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBridgeTarget")
            .field("bus", &self.bus)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Target for EventBridgeTarget {
    fn send<'a>(&'a self, message: &'a TargetMessage<'a>, timeout: Duration) -> TargetFuture<'a> {
        Box::pin(self.send_within(message, timeout))
    }
}
