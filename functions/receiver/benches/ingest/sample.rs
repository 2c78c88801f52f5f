//! The request that both sides store: a Stripe-like event with a body of 2 KiB.

use hmac::{Hmac, KeyInit, Mac};
use hookstead_receiver::InboundRequest;
use hookstead_signing::Headers;
use sha2::Sha256;
use time::OffsetDateTime;

pub(crate) const SECRET: &str = "whsec_bench_2f6c1d9a7b3e5041";
pub(crate) const EVENT_TYPE: &str = "invoice.paid";
pub(crate) const CONTENT_TYPE: &str = "application/json; charset=utf-8";

/// Length of the body, in bytes.
const BODY_BYTES: usize = 2_048;

/// A body of exactly 2 KiB with this event id. The filler is text that compresses
/// like an ordinary event, not like a row of zeros.
pub(crate) fn body(event_id: &str, created: i64) -> String {
    let head = format!(
        "{{\"id\":\"{event_id}\",\"object\":\"event\",\"type\":\"{EVENT_TYPE}\",\"created\":{created},\
         \"livemode\":false,\"data\":{{\"object\":{{"
    );
    let mut body = head;
    let mut n: u64 = 0x9e37_79b9_7f4a_7c15;
    while body.len() < BODY_BYTES - 80 {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        body.push_str(&format!("\"field_{:02}\":\"{:012x}\",", n >> 58, n >> 16));
    }
    let tail = "\"}}}";
    let open = "\"note\":\"";
    let filler = BODY_BYTES - body.len() - open.len() - tail.len();
    body.push_str(open);
    body.push_str(&"x".repeat(filler));
    body.push_str(tail);
    body
}

/// The body as a signed request.
pub(crate) fn request(body: String) -> InboundRequest {
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let mut mac =
        Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key length is fine");
    mac.update(format!("{now}.").as_bytes());
    mac.update(body.as_bytes());
    let signature = format!("t={now},v1={}", hex::encode(mac.finalize().into_bytes()));
    InboundRequest {
        method: "POST".to_owned(),
        path: "/webhooks/stripe".to_owned(),
        raw_query: String::new(),
        origin: "https://hooks.example.com".to_owned(),
        headers: Headers::from_pairs(headers(&signature)),
        body: body.into_bytes(),
    }
}

/// About 330 bytes of headers, as a provider sends them.
pub(crate) fn headers(signature: &str) -> [(&'static str, String); 7] {
    [
        ("content-type", CONTENT_TYPE.to_owned()),
        (
            "user-agent",
            "Stripe/1.0 (+https://stripe.com/docs/webhooks)".to_owned(),
        ),
        ("accept", "*/*; q=0.5, application/xml".to_owned()),
        ("content-length", BODY_BYTES.to_string()),
        ("x-forwarded-for", "192.0.2.17".to_owned()),
        ("x-forwarded-proto", "https".to_owned()),
        ("stripe-signature", signature.to_owned()),
    ]
}
