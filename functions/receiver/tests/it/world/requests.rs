//! Requests, signed by code that is independent of the crates under test, and
//! what their answers say.

use hmac::{Hmac, KeyInit, Mac};
use hookstead_receiver::{Answer, InboundRequest};
use hookstead_signing::Headers;
use serde_json::{Value, json};
use sha2::Sha256;

use super::KEY;

/// A POST to `/webhooks/{name}`.
pub(crate) fn post(name: &str, headers: &[(&str, &str)], body: &[u8]) -> InboundRequest {
    InboundRequest {
        method: "POST".to_owned(),
        path: format!("/webhooks/{name}"),
        raw_query: String::new(),
        origin: "https://hooks.example.test".to_owned(),
        headers: Headers::from_pairs(headers.iter().copied()),
        body: body.to_vec(),
    }
}

/// A request without a body.
pub(crate) fn bare(method: &str, path: &str, raw_query: &str) -> InboundRequest {
    InboundRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        raw_query: raw_query.to_owned(),
        ..post("", &[], b"")
    }
}

/// HMAC-SHA256 as lower-case hex, independent of the crate under test.
pub(crate) fn hmac_hex(key: &str, message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(message);
    hex::encode(mac.finalize().into_bytes())
}

/// A GitHub delivery with this id, signed with [`KEY`].
pub(crate) fn github(id: &str, body: &[u8]) -> InboundRequest {
    let signature = format!("sha256={}", hmac_hex(KEY, body));
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("X-GitHub-Event", "push"),
        ("X-Hub-Signature-256", &signature),
    ];
    if !id.is_empty() {
        headers.push(("X-GitHub-Delivery", id));
    }
    post("github", &headers, body)
}

/// A Stripe delivery signed with [`KEY`] at `unix_s`.
pub(crate) fn stripe(unix_s: i64, body: &[u8]) -> InboundRequest {
    let signed = [format!("{unix_s}.").as_bytes(), body].concat();
    let signature = format!("t={unix_s},v1={}", hmac_hex(KEY, &signed));
    let headers = [
        ("Content-Type", "application/json; charset=utf-8"),
        ("Stripe-Signature", signature.as_str()),
    ];
    post("stripe", &headers, body)
}

/// A delivery of [`custom_source`], signed with [`KEY`] at `unix_s`.
pub(crate) fn acme(unix_s: i64, id: &str, body: &[u8]) -> InboundRequest {
    let signed = [format!("{unix_s}.").as_bytes(), body].concat();
    let signature = hmac_hex(KEY, &signed);
    let timestamp = unix_s.to_string();
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("X-Acme-Timestamp", timestamp.as_str()),
        ("X-Acme-Signature", signature.as_str()),
    ];
    if !id.is_empty() {
        headers.push(("X-Acme-Id", id));
    }
    post("acme", &headers, body)
}

/// Replaces the value of a header, or adds it.
pub(crate) fn with_header(mut request: InboundRequest, name: &str, value: &str) -> InboundRequest {
    let others: Vec<(String, String)> = request
        .headers
        .iter()
        .filter(|(known, _)| !known.eq_ignore_ascii_case(name))
        .map(|(known, value)| (known.to_owned(), value.to_owned()))
        .collect();
    request.headers = Headers::from_pairs(others);
    request.headers.push(name, value);
    request
}

/// The code in a refusal's body, and that nothing else is in it.
pub(crate) fn code(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        body.as_object().unwrap().len(),
        1,
        "a refusal says its code and nothing else"
    );
    body["error"].as_str().unwrap().to_owned()
}

/// The event id in an answer.
pub(crate) fn event_id(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["event_id"].as_str().unwrap().to_owned()
}

pub(crate) fn is_duplicate(answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    body["duplicate"] == json!(true)
}
