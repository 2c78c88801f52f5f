//! What is sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookstead_domain::Attribute;
use serde::ser::{SerializeMap as _, Serializer as _};
use serde_json::value::RawValue;

/// An event on its way. It has no `Debug`, because it holds a payload.
#[derive(Clone, Copy)]
pub struct TargetMessage<'a> {
    /// The envelope.
    pub attributes: &'a [Attribute],
    /// The content type that the body came with.
    pub content_type: Option<&'a str>,
    /// The body, as it was received.
    pub body: &'a [u8],
}

impl TargetMessage<'_> {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|attribute| attribute.name == name);
        found.map(|attribute| attribute.value.as_str())
    }
}

/// The event and its envelope in one JSON object, CloudEvents' JSON format: what buses
/// and functions receive.
///
/// The attributes are members, and `datacontenttype` where the body came with one. A body
/// that says it is JSON, or says nothing, and is JSON, stands in `data`, as the text it
/// came as. Any other body stands in `data_base64`.
#[must_use]
pub fn structured(message: &TargetMessage<'_>) -> String {
    // Base64 is a third longer; the attributes take some hundred bytes.
    let mut document = Vec::with_capacity(message.body.len() / 3 * 4 + 1024);
    write(message, &mut document).expect("names and values are text, and memory takes them");
    String::from_utf8(document).expect("JSON is UTF-8")
}

fn write(message: &TargetMessage<'_>, document: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let mut serializer = serde_json::Serializer::new(document);
    let mut map = serializer.serialize_map(None)?;
    for attribute in message.attributes {
        map.serialize_entry(attribute.name, &attribute.value)?;
    }
    if let Some(content_type) = message.content_type {
        map.serialize_entry("datacontenttype", content_type)?;
    }
    let says_json = message.content_type.is_none_or(is_json);
    let data = says_json.then(|| serde_json::from_slice::<&RawValue>(message.body).ok());
    match data.flatten() {
        Some(data) => map.serialize_entry("data", data)?,
        None => map.serialize_entry("data_base64", &STANDARD.encode(message.body))?,
    }
    map.end()
}

/// Whether a content type declares JSON: `application/json`, `text/json`, `…+json`.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let subtype = essence.split_once('/').map(|(_, subtype)| subtype);
    subtype.is_some_and(|subtype| {
        let subtype = subtype.to_ascii_lowercase();
        subtype == "json" || subtype.ends_with("+json")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn written(content_type: Option<&str>, body: &[u8]) -> String {
        let attributes =
            [("id", "e-1"), ("type", "a \"quoted\" é")].map(|(name, value)| Attribute {
                name,
                value: value.to_owned(),
            });
        structured(&TargetMessage {
            attributes: &attributes,
            content_type,
            body,
        })
    }

    #[test]
    fn json_stands_in_data_as_the_text_it_came_as() {
        let body = br#"{ "b":1, "a":2.0, "n":12345678901234567890.10, "u":"\u00e9" }"#;
        let expected = r#"{"id":"e-1","type":"a \"quoted\" é","datacontenttype":"application/json","data":{ "b":1, "a":2.0, "n":12345678901234567890.10, "u":"\u00e9" }}"#;
        assert_eq!(written(Some("application/json"), body), expected);
        assert!(written(None, b"[1]").ends_with("\"data\":[1]}"));
        assert!(written(Some("application/vnd.x+JSON; v=1"), b"1").ends_with("\"data\":1}"));
    }

    #[test]
    fn everything_else_stands_in_base64() {
        for (content_type, body) in [
            (Some("text/plain"), b"1".as_slice()),
            (Some("application/json"), b"{\"cut\":"),
            (Some("application/json"), b"\"\xff\""),
            (Some("application/json"), b""),
            (Some("json"), b"1"),
            (None, b"a=b&c=d"),
        ] {
            let written: Value = serde_json::from_str(&written(content_type, body)).unwrap();
            assert_eq!(written.get("data"), None, "{content_type:?}");
            let data = written["data_base64"].as_str().unwrap();
            assert_eq!(STANDARD.decode(data).unwrap(), body);
        }
    }

    proptest! {
        #[test]
        fn any_body_gives_an_object_that_holds_it(
            body in prop::collection::vec(any::<u8>(), 0..60),
            content_type in prop::option::of("[ -~]{0,20}"),
        ) {
            let written = written(content_type.as_deref(), &body);
            let written: Value = serde_json::from_str(&written).unwrap();
            match written.get("data_base64") {
                Some(data) => {
                    prop_assert_eq!(STANDARD.decode(data.as_str().unwrap()).unwrap(), body);
                }
                None => {
                    let sent: Value = serde_json::from_slice(&body).unwrap();
                    prop_assert_eq!(&written["data"], &sent);
                }
            }
        }
    }
}
