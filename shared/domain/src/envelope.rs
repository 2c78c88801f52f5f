//! What stands on the envelope of a delivery: CloudEvents 1.0.
//!
//! The attributes only ever grow: none is renamed, removed or given another meaning.

use std::fmt::Write as _;

use time::UtcOffset;
use time::format_description::well_known::Rfc3339;

use crate::{EventId, SourceName, Timestamp};

/// The version of CloudEvents.
pub const SPEC_VERSION: &str = "1.0";

/// What an envelope is written from.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// The event.
    pub event_id: EventId,
    /// Where it came from.
    pub source: &'a SourceName,
    /// Its type.
    pub event_type: &'a str,
    /// When it happened, where the provider says so.
    pub occurred_at: Option<Timestamp>,
    /// When it was received.
    pub received_at: Timestamp,
    /// The version of its schema.
    pub schema_version: &'a str,
    /// Whose it is.
    pub tenant: Option<&'a str>,
    /// The event that it follows from.
    pub cause_event_id: Option<EventId>,
}

/// One attribute: its name, and its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The name, as in structured mode.
    pub name: &'static str,
    /// The value, as in structured mode.
    pub value: String,
}

impl Envelope<'_> {
    /// The attributes, in the order in which they are sent.
    ///
    /// `source` is `/sources/NAME`; `time` is when the event happened and is left
    /// out where nobody said; `dataschema` is `urn:hookstead:schema:SOURCE:VERSION`;
    /// `recordedtime` is when it was received, and `causationid` the event that it follows
    /// from: both are documented extensions of CloudEvents. Times are UTC, to the microsecond.
    #[must_use]
    pub fn attributes(&self) -> Vec<Attribute> {
        let source = self.source.as_str();
        let version = percent_encoded(self.schema_version, |byte| {
            byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
        });
        let schema = format!("urn:hookstead:schema:{source}:{version}");
        let attributes = [
            ("specversion", Some(SPEC_VERSION.to_owned())),
            ("id", Some(self.event_id.to_string())),
            ("source", Some(format!("/sources/{source}"))),
            ("type", Some(self.event_type.to_owned())),
            ("time", self.occurred_at.and_then(utc)),
            ("dataschema", Some(schema)),
            ("recordedtime", utc(self.received_at)),
            ("hooksteadtenant", self.tenant.map(str::to_owned)),
            ("causationid", self.cause_event_id.map(|id| id.to_string())),
        ];
        let present = attributes.into_iter();
        present
            .filter_map(|(name, value)| value.map(|value| Attribute { name, value }))
            .collect()
    }
}

impl Attribute {
    /// The name of its header in binary mode.
    #[must_use]
    pub fn header_name(&self) -> String {
        format!("ce-{}", self.name)
    }

    /// The value of its header in binary mode: what is not printable ASCII, and
    /// space, quote and percent, are percent-encoded UTF-8.
    #[must_use]
    pub fn header_value(&self) -> String {
        percent_encoded(&self.value, |byte| {
            byte.is_ascii_graphic() && byte != b'"' && byte != b'%'
        })
    }
}

fn percent_encoded(text: &str, stays: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if stays(byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a String never fails");
        }
    }
    encoded
}

/// RFC 3339; `None` for years that it cannot write.
fn utc(moment: Timestamp) -> Option<String> {
    let moment = moment.truncate_to_microsecond().to_offset(UtcOffset::UTC);
    moment.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    fn written(envelope: &Envelope<'_>) -> Vec<(String, String)> {
        let attributes = envelope.attributes();
        let headers = attributes.iter();
        headers
            .map(|attribute| (attribute.header_name(), attribute.header_value()))
            .collect()
    }

    #[test]
    fn an_envelope_is_these_headers() {
        let source: SourceName = "stripe-main".parse().unwrap();
        let event_id = EventId::new(1_770_000_000_000, [7; 10]);
        let mut envelope = Envelope {
            event_id,
            source: &source,
            event_type: "invoice.paid",
            occurred_at: Some(datetime!(2026-02-03 05:05:06 +1)),
            received_at: datetime!(2026-02-03 04:05:07.123_456_7 UTC),
            schema_version: "2026 \"é\"",
            tenant: Some("acme 50%"),
            cause_event_id: Some(event_id),
        };
        let id = event_id.to_string();
        let expected = [
            ("ce-specversion", "1.0"),
            ("ce-id", &id),
            ("ce-source", "/sources/stripe-main"),
            ("ce-type", "invoice.paid"),
            ("ce-time", "2026-02-03T04:05:06Z"),
            (
                "ce-dataschema",
                "urn:hookstead:schema:stripe-main:2026%2520%2522%25C3%25A9%2522",
            ),
            ("ce-recordedtime", "2026-02-03T04:05:07.123456Z"),
            ("ce-hooksteadtenant", "acme%2050%25"),
            ("ce-causationid", &id),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(written(&envelope), expected);
        (
            envelope.occurred_at,
            envelope.tenant,
            envelope.cause_event_id,
        ) = (None, None, None);
        let names: Vec<_> = envelope.attributes().iter().map(|one| one.name).collect();
        assert_eq!(
            names,
            [
                "specversion",
                "id",
                "source",
                "type",
                "dataschema",
                "recordedtime"
            ]
        );
    }

    proptest! {
        #[test]
        fn no_value_can_end_a_header_or_be_misread(value in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            let attribute = Attribute { name: "type", value: value.clone() };
            let written = attribute.header_value();
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_graphic()));
            // Decoding gives the value back.
            let mut bytes = Vec::new();
            let mut rest = written.as_str();
            while let Some(letter) = rest.chars().next() {
                if letter == '%' {
                    bytes.push(u8::from_str_radix(&rest[1..3], 16).unwrap());
                    rest = &rest[3..];
                } else {
                    bytes.push(letter as u8);
                    rest = &rest[1..];
                }
            }
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), value);
        }
    }
}
