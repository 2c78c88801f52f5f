//! Structured mode: envelope and event in one JSON document.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookstead_domain::Envelope;
use serde::ser::{SerializeMap as _, Serializer as _};
use serde_json::value::RawValue;

/// The document.
///
/// JSON stands in `data` as the text it came as: numbers, order, spacing and escapes are
/// the event's own. Everything else stands in `data_base64`, JSON of another declared
/// type too: readers take `data` for what `datacontenttype` says.
pub(super) fn write(
    envelope: &Envelope<'_>,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<Bytes, serde_json::Error> {
    let json = content_type.is_none_or(is_json);
    let data = json.then(|| serde_json::from_slice::<&RawValue>(body).ok());
    // Base64 is a third longer; the attributes take some hundred bytes.
    let mut document = Vec::with_capacity(body.len() / 3 * 4 + 1024);
    let mut serializer = serde_json::Serializer::new(&mut document);
    let mut map = serializer.serialize_map(None)?;
    for attribute in envelope.attributes() {
        map.serialize_entry(attribute.name, &attribute.value)?;
    }
    if let Some(content_type) = content_type {
        map.serialize_entry("datacontenttype", content_type)?;
    }
    match data.flatten() {
        Some(data) => map.serialize_entry("data", data)?,
        None => map.serialize_entry("data_base64", &STANDARD.encode(body))?,
    }
    map.end()?;
    Ok(document.into())
}

/// Whether a content type declares JSON: `application/json`, `text/json`, `…+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let subtype = essence.rsplit('/').next().unwrap_or_default();
    let subtype = subtype.to_ascii_lowercase();
    essence.contains('/') && (subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_what_says_so() {
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "text/json",
            "application/cloudevents+json",
            "application/vnd.example.v2+json ;a=b",
        ] {
            assert!(is_json(json), "{json}");
        }
        for other in [
            "",
            "json",
            "text/plain",
            "application/jsonl",
            "application/json-seq",
        ] {
            assert!(!is_json(other), "{other}");
        }
    }
}
