//! An outbox row on its way to becoming an event.

use std::borrow::Cow;

use hookstead_domain::{EventId, Timestamp};
use uuid::Uuid;

use crate::payload::{self, PayloadError};

/// What is decided about a row before the database writes its event.
pub(super) struct Expansion {
    pub(super) outbox_id: Uuid,
    pub(super) event_id: EventId,
    /// Whether the body is the payload as it stands: then it does not travel back.
    pub(super) body_fits: bool,
    /// The payload, where it is not the body.
    pub(super) payload: Option<String>,
    pub(super) payload_error: Option<PayloadError>,
}

impl Expansion {
    /// `now` is the time of the transaction that writes the event: its id and its
    /// time of receipt are the same moment, so that both say the same day.
    pub(super) fn new(outbox_id: Uuid, content_type: &str, body: &[u8], now: Timestamp) -> Self {
        let parsed = payload::parse(Some(&media_type(content_type)), body);
        let payload_error = parsed.error();
        let text = parsed.into_text();
        Self {
            outbox_id,
            event_id: event_id(outbox_id, now),
            body_fits: matches!(text, Some(Cow::Borrowed(_))),
            payload: text.and_then(|text| match text {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            }),
            payload_error,
        }
    }

    /// The same row after the database refused its payload.
    pub(super) fn without_payload(&self) -> Self {
        Self {
            outbox_id: self.outbox_id,
            event_id: self.event_id,
            body_fits: false,
            payload: None,
            payload_error: Some(PayloadError::RejectedByDatabase),
        }
    }
}

/// A media type in lower case, without its parameters.
fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The event's id: that moment, and what is random in the row's own id. Version and
/// variant lie in the middle of a random UUID, so both of its ends are random.
fn event_id(outbox_id: Uuid, now: Timestamp) -> EventId {
    let ms = u64::try_from(now.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
    let id = outbox_id.into_bytes();
    let mut random = [0; 10];
    random[..5].copy_from_slice(&id[..5]);
    random[5..].copy_from_slice(&id[11..]);
    EventId::new(ms, random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: Timestamp = datetime!(2026-02-03 04:05:06.789 UTC);

    fn expansion(content_type: &str, body: &[u8]) -> Expansion {
        Expansion::new(Uuid::nil(), content_type, body, NOW)
    }

    #[test]
    fn a_body_of_json_does_not_travel_twice() {
        let json = expansion("application/json; charset=utf-8", b"{\"a\":1}");
        assert!(json.body_fits && json.payload.is_none());
        assert_eq!(json.event_id.received_at_ms(), 1_770_091_506_789);
    }

    #[test]
    fn a_form_becomes_an_object_and_bytes_become_a_reason() {
        let form = expansion("Application/X-WWW-Form-Urlencoded", b"a=1");
        assert_eq!(form.payload.as_deref(), Some(r#"{"a":"1"}"#));
        let bytes = expansion("application/octet-stream", b"\xff");
        assert_eq!(bytes.payload_error, Some(PayloadError::NotUtf8));
        assert!(!bytes.body_fits && bytes.payload.is_none());
    }

    #[test]
    fn ids_of_one_moment_differ() {
        let [one, other] = [1, 2].map(|n| event_id(Uuid::from_u128(n << 100), NOW));
        assert_ne!(one, other);
        assert_ne!(one, event_id(Uuid::from_u128(1), NOW));
    }
}
