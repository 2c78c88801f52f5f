//! What is received and delivered: a Stripe-like event with a body of 2 KiB.

use anyhow::Context as _;
use hookstead_receiver::InboundRequest;
use hookstead_signing::{Headers, Scheme, Secret, SignInput, builtin, sign};
use time::OffsetDateTime;

pub(crate) const SECRET: &str = "whsec_bench_2f6c1d9a7b3e5041";
pub(crate) const EVENT_TYPE: &str = "invoice.paid";
pub(crate) const CONTENT_TYPE: &str = "application/json; charset=utf-8";

/// Length of the body, in bytes.
const BODY_BYTES: usize = 2_048;

/// What every body begins with; the event's number follows, in sixteen digits.
const BEGINNING: &str = "{\"id\":\"evt_";

/// A body of exactly 2 KiB with this event number. The filler is text that compresses
/// like an ordinary event, not like a row of zeros.
pub(crate) fn body(number: u64) -> String {
    let mut body = String::with_capacity(BODY_BYTES);
    body.push_str(&format!(
        "{BEGINNING}{number:016}\",\"object\":\"event\",\"type\":\"{EVENT_TYPE}\",\
         \"created\":1790000000,\"livemode\":false,\"data\":{{\"object\":{{"
    ));
    let mut n: u64 = 0x9e37_79b9_7f4a_7c15;
    while body.len() < BODY_BYTES - 80 {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        body.push_str(&format!("\"field_{:02}\":\"{:012x}\",", n >> 58, n >> 16));
    }
    let open = "\"note\":\"";
    let tail = "\"}}}";
    let filler = BODY_BYTES - body.len() - open.len() - tail.len();
    body.push_str(open);
    body.extend(std::iter::repeat_n('x', filler));
    body.push_str(tail);
    body
}

/// The event number that a body begins with.
pub(crate) fn number_in(body: &[u8]) -> Option<u64> {
    let digits = body.strip_prefix(BEGINNING.as_bytes())?.get(..16)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Signs requests as the provider does.
pub(crate) struct Provider {
    scheme: &'static Scheme,
    secret: Secret,
}

impl Provider {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            scheme: builtin("stripe").context("the kind stripe is built in")?,
            secret: Secret::new(SECRET)?,
        })
    }

    /// The signed request of an event.
    pub(crate) fn request(&self, number: u64) -> anyhow::Result<InboundRequest> {
        let body = body(number);
        let signed = sign(
            self.scheme,
            &self.secret,
            &SignInput {
                method: "POST",
                url: "https://hooks.example.com/webhooks/stripe",
                headers: &Headers::from_pairs(headers()),
                body: body.as_bytes(),
                now: OffsetDateTime::now_utc(),
                id: "",
            },
        )?;
        Ok(InboundRequest {
            method: "POST".to_owned(),
            path: "/webhooks/stripe".to_owned(),
            raw_query: String::new(),
            origin: "https://hooks.example.com".to_owned(),
            headers: signed.headers,
            body: signed.body,
        })
    }
}

/// The headers beside the signature, as a provider sends them.
pub(crate) fn headers() -> [(&'static str, &'static str); 6] {
    [
        ("content-type", CONTENT_TYPE),
        (
            "user-agent",
            "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        ),
        ("accept", "*/*; q=0.5, application/xml"),
        ("content-length", "2048"),
        ("x-forwarded-for", "192.0.2.17"),
        ("x-forwarded-proto", "https"),
    ]
}
