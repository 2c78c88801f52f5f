//! OUT-01, OUT-02, OUT-15 and OUT-21: what a consumer receives.

use std::sync::LazyLock;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hookstead_domain::{DeliveryId, Envelope, ErrorClass, SourceName, Timestamp};
use hookstead_egress::webhook::{
    CustomHeaders, Mode, SigningSecrets, WebhookError, WebhookInput, WebhookRequest,
};
use hookstead_signing::Secret;
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;
use standardwebhooks::Webhook;
use time::{Duration, OffsetDateTime};

use crate::server::{Server, ok};
use crate::support::{LONG, body, client, header_lines, http, values};

const CURRENT: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const PREVIOUS: &str = "whsec_/////////////////////w==";

/// Bytes that a second serialisation would change.
const ODD_JSON: &str = "{ \"b\" : 1.0,\n\"a\":1e5, \"b\":\"\\u00e9\u{e9} \\/ \u{1f980}\", \
                        \"big\":12345678901234567890.10, \"nested\":{\"z\":[ ],\"y\":null} }";

static SOURCE: LazyLock<SourceName> = LazyLock::new(|| "stripe-main".parse().unwrap());
static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::new(CURRENT).unwrap());
static OLD_SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::new(PREVIOUS).unwrap());
static NO_HEADERS: LazyLock<CustomHeaders> = LazyLock::new(CustomHeaders::default);

/// The delivery of an event, with everything that one can have.
struct Delivery {
    envelope: Envelope<'static>,
    id: DeliveryId,
    body: Bytes,
}

fn delivery(body: impl Into<Bytes>) -> Delivery {
    let event_id = "0192f8a0-0000-7000-8000-000000000001".parse().unwrap();
    let received_at = OffsetDateTime::from_unix_timestamp(1_764_500_000).unwrap();
    Delivery {
        envelope: Envelope {
            event_id,
            source: &SOURCE,
            event_type: "invoice.paid",
            occurred_at: Some(received_at - Duration::seconds(2)),
            received_at,
            schema_version: "2025-09-30.clover",
            tenant: Some("acme"),
            cause_event_id: Some(event_id),
        },
        id: "0192f8a0-1111-7000-8000-000000000002".parse().unwrap(),
        body: body.into(),
    }
}

impl Delivery {
    fn input(&self, mode: Mode, attempt: u32, now: Timestamp) -> WebhookInput<'_> {
        WebhookInput {
            envelope: &self.envelope,
            delivery_id: self.id,
            attempt,
            mode,
            content_type: Some("application/json; charset=utf-8"),
            body: &self.body,
            custom_headers: &NO_HEADERS,
            secrets: SigningSecrets {
                current: &SECRET,
                previous: None,
            },
            now,
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        }
    }
}

/// What stands on the wire, caught at a raw socket.
async fn on_the_wire(input: WebhookInput<'_>) -> Vec<u8> {
    let server = Server::answering(ok("fine")).await;
    let request = WebhookRequest::build(input).unwrap();
    let request = request.to(http(server.port()), LONG, true);
    client().send(request).await.unwrap();
    server.requests().remove(0)
}

/// The signature, computed from the captured bytes and nothing else.
fn expected_signature(request: &[u8], secret: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(values(request, "webhook-id")[0].as_bytes());
    mac.update(b".");
    mac.update(values(request, "webhook-timestamp")[0].as_bytes());
    mac.update(b".");
    mac.update(body(request));
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Whether the published library takes the captured request.
fn published_library_takes(request: &[u8], secret: &str) -> bool {
    let mut headers = HeaderMap::new();
    for (name, value) in header_lines(request) {
        let name = HeaderName::try_from(name).unwrap();
        headers.append(name, HeaderValue::try_from(value).unwrap());
    }
    Webhook::new(secret)
        .unwrap()
        .verify(body(request), &headers)
        .is_ok()
}

#[tokio::test]
async fn out_15_what_is_signed_is_what_is_sent() {
    let delivery = delivery(ODD_JSON);
    for mode in [Mode::Binary, Mode::Structured] {
        for attempt in 1..=2 {
            let now = OffsetDateTime::now_utc();
            let request = on_the_wire(delivery.input(mode, attempt, now)).await;
            let signature = expected_signature(&request, CURRENT);
            assert_eq!(values(&request, "webhook-signature"), [signature]);
            assert!(published_library_takes(&request, CURRENT));
            assert!(!published_library_takes(&request, PREVIOUS));
        }
    }
}

#[tokio::test]
async fn out_15_bytes_that_are_no_text_are_signed_as_they_are() {
    let delivery = delivery(&b"\x00\xff\xfe\r\n\r\n\x80"[..]);
    let now = OffsetDateTime::now_utc();
    let request = on_the_wire(delivery.input(Mode::Binary, 1, now)).await;
    assert_eq!(body(&request), &delivery.body[..]);
    let signature = expected_signature(&request, CURRENT);
    assert_eq!(values(&request, "webhook-signature"), [signature]);
}

#[tokio::test]
async fn out_15_while_two_secrets_are_live_either_of_them_verifies() {
    let delivery = delivery(ODD_JSON);
    let mut input = delivery.input(Mode::Binary, 1, OffsetDateTime::now_utc());
    input.secrets.previous = Some(&OLD_SECRET);
    let request = on_the_wire(input).await;
    let both = [
        expected_signature(&request, CURRENT),
        expected_signature(&request, PREVIOUS),
    ];
    assert_eq!(values(&request, "webhook-signature"), [both.join(" ")]);
    assert!(published_library_takes(&request, CURRENT));
    assert!(published_library_takes(&request, PREVIOUS));
}

#[tokio::test]
async fn out_01_every_attempt_is_signed_afresh() {
    let delivery = delivery(ODD_JSON);
    let first = OffsetDateTime::now_utc() - Duration::minutes(20);
    let later = OffsetDateTime::now_utc();
    for mode in [Mode::Binary, Mode::Structured] {
        let old = on_the_wire(delivery.input(mode, 1, first)).await;
        let new = on_the_wire(delivery.input(mode, 4, later)).await;
        // OUT-02: the id and the bytes are those of the delivery, not of the attempt.
        assert_eq!(values(&old, "webhook-id"), [delivery.id.to_string()]);
        assert_eq!(values(&old, "webhook-id"), values(&new, "webhook-id"));
        assert_eq!(body(&old), body(&new));
        let stamp = later.unix_timestamp().to_string();
        assert_eq!(values(&new, "webhook-timestamp"), [stamp]);
        assert_eq!(values(&new, "hookstead-attempt"), ["4"]);
        assert!(!published_library_takes(&old, CURRENT), "too old by then");
        assert!(published_library_takes(&new, CURRENT));
    }
}

#[tokio::test]
async fn binary_mode_leaves_the_bytes_alone_and_says_the_rest_in_headers() {
    let delivery = delivery(ODD_JSON);
    let now = OffsetDateTime::from_unix_timestamp(1_764_500_001).unwrap();
    let request = on_the_wire(delivery.input(Mode::Binary, 3, now)).await;
    assert_eq!(body(&request), ODD_JSON.as_bytes());
    let id = "0192f8a0-0000-7000-8000-000000000001";
    let expected = [
        ("ce-causationid", id),
        (
            "ce-dataschema",
            "urn:hookstead:schema:stripe-main:2025-09-30.clover",
        ),
        ("ce-hooksteadtenant", "acme"),
        ("ce-id", id),
        ("ce-recordedtime", "2025-11-30T10:53:20Z"),
        ("ce-source", "/sources/stripe-main"),
        ("ce-specversion", "1.0"),
        ("ce-time", "2025-11-30T10:53:18Z"),
        ("ce-type", "invoice.paid"),
        ("content-type", "application/json; charset=utf-8"),
        ("hookstead-attempt", "3"),
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        (
            "user-agent",
            concat!("Hookstead/", env!("CARGO_PKG_VERSION")),
        ),
        ("webhook-id", "0192f8a0-1111-7000-8000-000000000002"),
        ("webhook-timestamp", "1764500001"),
    ];
    let mut lines = header_lines(&request);
    let elsewhere = ["host", "content-length", "webhook-signature"];
    lines.retain(|(name, _)| !elsewhere.contains(&name.as_str()));
    lines.sort();
    let lines: Vec<_> = lines
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn structured_mode_has_json_as_the_text_it_came_as() {
    let delivery = delivery(ODD_JSON);
    let now = OffsetDateTime::now_utc();
    let request = on_the_wire(delivery.input(Mode::Structured, 1, now)).await;
    assert_eq!(
        values(&request, "content-type"),
        ["application/cloudevents+json"]
    );
    assert!(
        header_lines(&request)
            .iter()
            .all(|(name, _)| !name.starts_with("ce-"))
    );
    let id = "0192f8a0-0000-7000-8000-000000000001";
    let expected = format!(
        "{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"/sources/stripe-main\",\
         \"type\":\"invoice.paid\",\"time\":\"2025-11-30T10:53:18Z\",\
         \"dataschema\":\"urn:hookstead:schema:stripe-main:2025-09-30.clover\",\
         \"recordedtime\":\"2025-11-30T10:53:20Z\",\"hooksteadtenant\":\"acme\",\
         \"causationid\":\"{id}\",\"datacontenttype\":\"application/json; charset=utf-8\",\
         \"data\":{ODD_JSON}}}"
    );
    assert_eq!(std::str::from_utf8(body(&request)).unwrap(), expected);
}

#[test]
fn structured_mode_has_everything_else_in_base64() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    for (content_type, bytes) in [
        (Some("application/json"), &b"{\"broken\":"[..]),
        (Some("application/json"), b""),
        (Some("application/json"), b"{} {}"),
        (Some("application/json"), b"\"\xff\""),
        (Some("application/json"), b"\xef\xbb\xbf{}"),
        (Some("application/x-www-form-urlencoded"), b"a=b"),
        // Readers take `data` of a text type for a text.
        (Some("text/plain"), b"{\"a\":1}"),
        (None, b"a=b"),
    ] {
        let delivery = delivery(bytes);
        let mut input = delivery.input(Mode::Structured, 1, OffsetDateTime::UNIX_EPOCH);
        input.content_type = content_type;
        let request = WebhookRequest::build(input).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(document["data_base64"], STANDARD.encode(bytes));
        assert!(document.get("data").is_none());
        assert_eq!(
            document.get("datacontenttype").and_then(|one| one.as_str()),
            content_type
        );
    }
    let delivery = delivery("  [1.0]\n");
    let mut input = delivery.input(Mode::Structured, 1, OffsetDateTime::UNIX_EPOCH);
    input.content_type = None;
    let request = WebhookRequest::build(input).unwrap();
    assert!(request.body.ends_with(b"\"data\":[1.0]}"));
}

#[test]
fn a_value_that_no_header_can_carry_is_left_out() {
    let delivery = delivery("{}");
    let mut input = delivery.input(Mode::Binary, 1, OffsetDateTime::UNIX_EPOCH);
    input.content_type = Some("text/plain\r\nwebhook-id: x");
    input.traceparent = Some("a\nb");
    let request = WebhookRequest::build(input).unwrap();
    assert!(!request.headers.contains_key("content-type"));
    assert!(!request.headers.contains_key("traceparent"));
}

#[tokio::test]
async fn out_21_stored_headers_cannot_replace_ours_on_the_wire() {
    let stored = CustomHeaders::stored([
        ("webhook-signature", "x"),
        ("Webhook-Id", "y"),
        ("WEBHOOK-TIMESTAMP", "0"),
        ("content-type", "text/html"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("host", "evil.example"),
        ("ce-id", "z"),
        ("user-agent", "curl"),
        ("x-broken", "a\r\nwebhook-id: y"),
        ("Authorization", "Bearer token"),
        ("authorization", "Bearer other"),
        ("X-Route", "a"),
    ]);
    let delivery = delivery(ODD_JSON);
    for mode in [Mode::Binary, Mode::Structured] {
        let mut input = delivery.input(mode, 1, OffsetDateTime::now_utc());
        input.custom_headers = &stored;
        let request = on_the_wire(input).await;
        let lines = header_lines(&request);
        for (name, _) in &lines {
            assert_eq!(values(&request, name).len(), 1, "{name} is there once");
        }
        assert!(published_library_takes(&request, CURRENT));
        assert_eq!(values(&request, "authorization"), ["Bearer token"]);
        assert_eq!(values(&request, "x-route"), ["a"]);
        assert_eq!(
            body(&request).len().to_string(),
            values(&request, "content-length")[0]
        );
        for bad in ["text/html", "evil.example", "curl", "chunked"] {
            assert!(lines.iter().all(|(_, value)| value != bad), "{bad}");
        }
    }
}

#[test]
fn a_secret_that_cannot_sign_is_an_unavailable_secret() {
    let secret = Secret::new("whsec_not base64").unwrap();
    let delivery = delivery("{}");
    let mut input = delivery.input(Mode::Binary, 1, OffsetDateTime::UNIX_EPOCH);
    input.secrets.current = &secret;
    let error = WebhookRequest::build(input).unwrap_err();
    assert_eq!(error.class(), ErrorClass::SecretUnavailable);
    assert!(matches!(error, WebhookError::Signing(_)));
    let shown = format!("{error:?} {error}");
    assert!(!shown.contains("not base64"), "{shown}");
}

#[test]
fn nothing_of_a_request_is_in_its_debug_output() {
    let delivery = delivery("CANARY");
    let custom = CustomHeaders::stored([("authorization", "CANARY")]);
    let mut input = delivery.input(Mode::Binary, 1, OffsetDateTime::UNIX_EPOCH);
    input.custom_headers = &custom;
    let request = WebhookRequest::build(input).unwrap();
    let shown = format!("{request:?}");
    assert!(!shown.contains("CANARY"), "{shown}");
    let request = request.to("https://CANARY.example/CANARY".to_owned(), LONG, false);
    let shown = format!("{request:?}");
    assert!(!shown.contains("CANARY"), "{shown}");
}

#[test]
fn a_mode_is_read_by_its_name() {
    assert_eq!("binary".parse(), Ok(Mode::Binary));
    assert_eq!("structured".parse(), Ok(Mode::Structured));
    assert!("Binary".parse::<Mode>().is_err());
    assert_eq!(
        serde_json::to_string(&Mode::Structured).unwrap(),
        "\"structured\""
    );
}
