//! API Gateway events, and why lambda_http does not read them here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead_receiver::http_api::{self, HttpApiEvent};
use hookstead_receiver::{Clock, Receiver};
use hookstead_store::{ConnectionLimits, Connections};
use serde_json::{Value, json};

use crate::world::{KEY, World, hmac_hex, limits};

/// An HTTP API event (payload format 2.0) for a GitHub delivery.
fn event(id: &str, body: &[u8]) -> Value {
    json!({
        "version": "2.0",
        "routeKey": "POST /webhooks/{source}",
        "rawPath": "/webhooks/github",
        "rawQueryString": "",
        "headers": {
            "content-type": "application/json",
            "content-length": body.len().to_string(),
            "host": "abc123.execute-api.eu-central-1.amazonaws.com",
            "user-agent": "GitHub-Hookshot/1",
            "x-forwarded-for": "192.0.2.1",
            "x-forwarded-proto": "https",
            "x-github-delivery": id,
            "x-github-event": "push",
            "x-hub-signature-256": format!("sha256={}", hmac_hex(KEY, body)),
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abc123",
            "domainName": "abc123.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "abc123",
            "http": {
                "method": "POST", "path": "/webhooks/github", "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1", "userAgent": "GitHub-Hookshot/1",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "POST /webhooks/{source}",
            "stage": "$default",
            "time": "10/Mar/2026:05:16:23 +0000",
            "timeEpoch": 1_773_119_783_000_u64,
        },
        "pathParameters": { "source": "github" },
        "body": String::from_utf8_lossy(body),
        "isBase64Encoded": false,
    })
}

async fn answer(world: &World, event: Value) -> Value {
    // As the runtime does it: from the bytes of the invocation.
    let event: HttpApiEvent = serde_json::from_slice(event.to_string().as_bytes()).unwrap();
    serde_json::to_value(http_api::answer(&world.receiver, event).await).unwrap()
}

#[tokio::test]
async fn rec_08_the_base64_flag_alone_decides() {
    let world = World::github().await;
    let body = "{\"msg\":\"ok 😊\"}".as_bytes();
    let as_text = event("d-1", body);
    let mut as_base64 = event("d-1", body);
    as_base64["body"] = json!(STANDARD.encode(body));
    as_base64["isBase64Encoded"] = json!(true);
    let mut without_flag = event("d-1", body);
    without_flag
        .as_object_mut()
        .unwrap()
        .remove("isBase64Encoded");
    for event in [as_text, as_base64, without_flag] {
        assert_eq!(answer(&world, event).await["statusCode"], json!(200));
    }
    assert_eq!(world.only_body().await, body);

    let mut broken = event("d-2", body);
    broken["body"] = json!("@@@");
    broken["isBase64Encoded"] = json!(true);
    let refused = answer(&world, broken).await;
    assert_eq!(refused["statusCode"], json!(400));
    assert_eq!(refused["body"], json!("{\"error\":\"malformed_request\"}"));
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn binary_bodies_arrive_byte_for_byte() {
    let world = World::github().await;
    let body: Vec<u8> = (0..=255).collect();
    let mut binary = event("d-1", &body);
    binary["body"] = json!(STANDARD.encode(&body));
    binary["isBase64Encoded"] = json!(true);
    assert_eq!(answer(&world, binary).await["statusCode"], json!(200));
    assert_eq!(world.only_body().await, body);
}

#[tokio::test]
async fn rec_10_header_names_of_any_case_are_read_from_an_event() {
    let world = World::github().await;
    for (n, upper) in [false, true].into_iter().enumerate() {
        let mut event = event(&format!("d-{n}"), b"{}");
        let headers = event["headers"].as_object().unwrap().clone();
        let renamed = headers.into_iter().map(|(name, value)| {
            let name = if upper {
                name.to_ascii_uppercase()
            } else {
                name
            };
            (name, value)
        });
        event["headers"] = Value::Object(renamed.collect());
        assert_eq!(answer(&world, event).await["statusCode"], json!(200));
    }
    let different = "select count(distinct headers - 'x-github-delivery') from hookstead.events";
    assert_eq!(world.number(different).await, 1);
}

#[tokio::test]
async fn rec_11_one_byte_outside_ascii_in_a_header_is_harmless() {
    let world = World::github().await;
    let mut event = event("d-1", b"{}");
    event["headers"]["user-agent"] = json!("test\u{ee}1");
    assert_eq!(answer(&world, event).await["statusCode"], json!(200));
    assert_eq!(
        world.only_event().await["headers"]["user-agent"],
        json!("test\u{ee}1")
    );
}

/// Keeps in view why the receiver reads its own event type: what `lambda_http`
/// does with events that a sender can cause. When this fails, the decision can be
/// looked at again.
#[test]
fn rec_08_lambda_http_does_not_survive_what_the_receiver_must_answer() {
    let harmless = event("d-1", b"{}");
    assert!(lambda_http::request::from_str(&harmless.to_string()).is_ok());

    let mut broken = event("d-2", b"{}");
    broken["body"] = json!("@@@");
    broken["isBase64Encoded"] = json!(true);
    let read = std::panic::catch_unwind(|| lambda_http::request::from_str(&broken.to_string()));
    assert!(read.is_err(), "a body that is not base64 no longer panics");

    let mut control = event("d-3", b"{}");
    control["headers"]["x-odd"] = json!("a\u{7}b");
    assert!(
        lambda_http::request::from_str(&control.to_string()).is_err(),
        "one control character in a header no longer fails the event"
    );
}

#[tokio::test]
async fn an_event_with_the_least_that_the_gateway_sends_is_answered() {
    let world = World::github().await;
    let least = json!({ "requestContext": { "http": { "method": "GET" } } });
    assert_eq!(answer(&world, least).await["statusCode"], json!(404));
    let nulls = json!({
        "rawPath": "/webhooks/github", "rawQueryString": null, "body": null,
        "isBase64Encoded": null, "headers": { "x-odd": null },
        "requestContext": { "http": { "method": "get" }, "domainName": null },
    });
    assert_eq!(answer(&world, nulls).await["statusCode"], json!(200));
}

#[tokio::test]
async fn an_answer_has_the_shape_that_the_gateway_takes() {
    let world = World::github().await;
    let stored = answer(&world, event("d-1", b"{}")).await;
    assert_eq!(stored["isBase64Encoded"], json!(false));
    assert_eq!(stored["headers"]["content-type"], json!("application/json"));
    assert!(stored["body"].is_string());
}

#[tokio::test]
async fn a_panic_is_the_documented_500_and_says_nothing() {
    let world = World::github().await;
    let connections =
        Connections::from_url(&world.database.url(), ConnectionLimits::default()).unwrap();
    let clock = Clock::from_fn(|| panic!("CANARY"));
    let receiver = Receiver::new(connections, world.secrets.clone(), clock, limits(), None);
    let event: HttpApiEvent = serde_json::from_value(event("d-1", b"{}")).unwrap();
    let answer = http_api::answer(&receiver, event).await;
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(answer["statusCode"], 500);
    assert_eq!(answer["body"], "{\"error\":\"internal\"}");
    assert!(!answer.to_string().contains("CANARY"));
}
