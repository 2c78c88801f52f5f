//! From a verified request to the row that is stored.

use hookstead_domain::{ErrorCode, EventId};
use hookstead_signing::{Request, Scheme, Verified};
use hookstead_store::{NewEvent, payload};
use time::{OffsetDateTime, UtcOffset};

use crate::body::media_type;
use crate::directory::Source;
use crate::stored_headers::stored_headers;

/// Longest event type and content type that are stored; the rest is cut.
const MAX_TYPE_CHARS: usize = 256;

/// The type of an event whose provider gives none.
const UNKNOWN_TYPE: &str = "unknown";

/// What was read from the request, kept so that a [`NewEvent`] can borrow it.
pub(crate) struct Draft<'r> {
    event_id: EventId,
    received_at: OffsetDateTime,
    key: String,
    /// The event's type, never empty.
    pub(crate) event_type: String,
    occurred_at: Option<OffsetDateTime>,
    payload: payload::Parsed<'r>,
    content_type: Option<String>,
    headers: serde_json::Value,
    verified_with: String,
}

impl<'r> Draft<'r> {
    /// Reads id, type, time and payload of a verified request.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Internal`] where the system gives no random bytes.
    pub(crate) fn new(
        source: &Source,
        scheme: &Scheme,
        request: &Request<'r>,
        verified: &Verified,
        received_at: OffsetDateTime,
    ) -> Result<Self, ErrorCode> {
        let event_id = new_event_id(received_at)?;
        let extracted = hookstead_signing::extract(scheme, request, verified);
        let key = source
            .dedupe
            .key(scheme, request, verified, &extracted, event_id);
        let media_type = media_type(request.headers);
        let content_type = request.headers.first("content-type");
        Ok(Self {
            event_id,
            received_at,
            key,
            event_type: bounded_type(extracted.event_type),
            occurred_at: extracted.occurred_at.filter(|at| has_common_form(*at)),
            payload: payload::parse(media_type.as_deref(), request.plain_body()),
            content_type: content_type.map(|text| cut(text, MAX_TYPE_CHARS)),
            headers: stored_headers(request.headers, scheme),
            verified_with: verified.label.clone(),
        })
    }

    /// The row.
    pub(crate) fn row<'a>(
        &'a self,
        source: &'a Source,
        raw_body: &'a [u8],
        region: Option<&'a str>,
        kicked: bool,
    ) -> NewEvent<'a> {
        NewEvent {
            event_id: self.event_id,
            source_id: source.record.source_id,
            external_event_id: &self.key,
            idempotency_key: None,
            event_type: &self.event_type,
            tenant: source.record.tenant.as_deref(),
            schema_version: &source.record.schema_version,
            raw_body,
            content_type: self.content_type.as_deref(),
            payload: self.payload.text(),
            payload_error: self.payload.error(),
            headers: &self.headers,
            signature_verified: true,
            verified_with: Some(&self.verified_with),
            occurred_at: self.occurred_at,
            received_at: self.received_at,
            cause_event_id: None,
            region,
            kicked,
        }
    }

    pub(crate) fn event_id(&self) -> EventId {
        self.event_id
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

fn new_event_id(received_at: OffsetDateTime) -> Result<EventId, ErrorCode> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| {
        tracing::error!(error = %error, "the system gave no random bytes");
        ErrorCode::Internal
    })?;
    let ms = received_at.unix_timestamp_nanos() / 1_000_000;
    // A clock before 1970 is no clock; such ids sort first and find no partition.
    Ok(EventId::new(u64::try_from(ms).unwrap_or(0), random))
}

fn bounded_type(event_type: Option<String>) -> String {
    match event_type.map(|text| cut(&text, MAX_TYPE_CHARS)) {
        Some(text) if !text.trim().is_empty() => text,
        _ => UNKNOWN_TYPE.to_owned(),
    }
}

/// Whether a time can be written with four digits for its year, as RFC 3339 and every
/// reader of it want. A sender's time with an offset may lie just outside; an event is
/// kept without such a time rather than with one that nothing can show.
fn has_common_form(at: OffsetDateTime) -> bool {
    at.checked_to_offset(UtcOffset::UTC)
        .is_some_and(|at| (0..=9999).contains(&at.year()))
}

/// At most `max` characters, and no NUL, which PostgreSQL's text cannot hold.
fn cut(text: &str, max: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::format_description::well_known::Rfc3339;

    #[test]
    fn a_time_that_rfc_3339_cannot_show_is_not_stored() {
        for (text, kept) in [
            ("2026-01-31T12:00:00Z", true),
            ("0000-01-01T00:00:00Z", true),
            ("9999-12-31T23:59:59Z", true),
            ("0000-01-01T00:00:00+23:59", false),
            ("9999-12-31T23:59:59-23:59", false),
        ] {
            let at = OffsetDateTime::parse(text, &Rfc3339).unwrap();
            assert_eq!(has_common_form(at), kept, "{text}");
        }
    }

    #[test]
    fn a_type_is_never_blank_and_never_too_long() {
        assert_eq!(bounded_type(None), "unknown");
        assert_eq!(bounded_type(Some("  ".to_owned())), "unknown");
        assert_eq!(bounded_type(Some("\0".to_owned())), "unknown");
        assert_eq!(bounded_type(Some("x".repeat(300))).len(), 256);
        assert_eq!(
            bounded_type(Some("invoice.paid".to_owned())),
            "invoice.paid"
        );
    }
}
