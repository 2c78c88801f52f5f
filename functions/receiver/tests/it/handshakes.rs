//! Requests that providers send to find out whether somebody is there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead_receiver::Receiver;
use hookstead_secrets::{LocalSecrets, VersionLabel};
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::role;
use serde_json::{Value, json};

use crate::world::{KEY, World, bare, code, hmac_hex, limits, post, source};

async fn meta() -> World {
    let world = World::with(vec![source("meta", "meta"), source("github", "github")]).await;
    let secret = r#"{"app_secret":"app-secret","verify_token":"right"}"#;
    world
        .secrets
        .set("test:meta", &[(VersionLabel::Current, secret)]);
    world
}

#[tokio::test]
async fn rec_16_a_challenge_is_echoed_only_to_who_knows_the_token() {
    let world = meta().await;
    let get = |query: &str| world.send(bare("GET", "/webhooks/meta", query));
    let right = get("hub.mode=subscribe&hub.verify_token=right&hub.challenge=PROBE123").await;
    assert_eq!(
        (right.status, right.body.as_slice()),
        (200, &b"PROBE123"[..])
    );
    let wrong = get("hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=PROBE123").await;
    assert_eq!(wrong.status, 403);
    assert!(!String::from_utf8_lossy(&wrong.body).contains("PROBE123"));
    let missing = get("hub.mode=subscribe&hub.verify_token=right").await;
    assert_eq!(missing.status, 400);
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_16_other_kinds_do_not_echo() {
    let world = meta().await;
    let query = "hub.mode=subscribe&hub.verify_token=right&hub.challenge=PROBE123";
    let answer = world.send(bare("GET", "/webhooks/github", query)).await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[tokio::test]
async fn a_signed_challenge_is_answered_only_when_its_signature_is_right() {
    let world = World::with(vec![source("slack", "slack")]).await;
    world
        .secrets
        .set("test:slack", &[(VersionLabel::Current, "slack-secret")]);
    let body = br#"{"type":"url_verification","challenge":"abc123"}"#;
    let now = world.clock.now_s().to_string();
    let signed = |key: &str| {
        let text = [format!("v0:{now}:").as_bytes(), body].concat();
        let signature = format!("v0={}", hmac_hex(key, &text));
        let headers = [
            ("X-Slack-Request-Timestamp", now.as_str()),
            ("X-Slack-Signature", signature.as_str()),
            ("Content-Type", "application/json"),
        ];
        post("slack", &headers, body)
    };
    let answer = world.send(signed("slack-secret")).await;
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).contains("abc123"));
    assert_eq!(world.send(signed("other")).await.status, 401);
    assert_eq!(world.rows().await, 0, "a challenge is no event");
}

#[tokio::test]
async fn an_okta_challenge_needs_the_static_header_and_echoes_in_json() {
    let world = World::with(vec![source("okta", "okta")]).await;
    world
        .secrets
        .set("test:okta", &[(VersionLabel::Current, "token")]);
    let get = |token: &str| {
        let mut request = bare("GET", "/webhooks/okta", "");
        request.headers.push("Authorization", token);
        request.headers.push("X-Okta-Verification-Challenge", "c-1");
        world.send(request)
    };
    let answer = get("token").await;
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (answer.status, body),
        (200, json!({ "verification": "c-1" }))
    );
    assert_eq!(get("wrong").await.status, 401);
}

/// A receiver whose secrets are files, so that a handshake can bring one.
fn with_files(world: &World, dir: &std::path::Path) -> Receiver<LocalSecrets> {
    let url = world.database.url_as(role::RECEIVER);
    let connections = Connections::from_url(&url, ConnectionLimits::default()).unwrap();
    Receiver::new(
        connections,
        LocalSecrets::new(dir),
        world.clock.clock(),
        limits(),
        None,
    )
}

#[tokio::test]
async fn a_secret_that_the_provider_chooses_is_kept_once_and_then_used() {
    let mut asana = source("asana", "asana");
    asana.secret_ref = Some("file:asana".to_owned());
    let world = World::with(vec![asana]).await;
    let dir = tempfile::tempdir().unwrap();
    let receiver = with_files(&world, dir.path());

    let unsigned = post("asana", &[("X-Hook-Signature", "00")], b"{}");
    let before = receiver.handle(unsigned).await;
    assert_eq!(
        (before.status, code(&before).as_str()),
        (503, "secret_unavailable")
    );

    let offer = |secret: &str| receiver.handle(post("asana", &[("X-Hook-Secret", secret)], b"{}"));
    let answer = offer("chosen").await;
    assert_eq!(
        (answer.status, answer.header("x-hook-secret")),
        (200, Some("chosen"))
    );
    let second = offer("somebody-else").await;
    assert_eq!(
        (second.status, code(&second).as_str()),
        (409, "secret_already_set")
    );

    let body = br#"{"events":[{"action":"added"}]}"#;
    let signed = |key: &str| post("asana", &[("X-Hook-Signature", &hmac_hex(key, body))], body);
    // Past the time for which the failed read stands.
    world.clock.advance_s(60);
    assert_eq!(receiver.handle(signed("chosen")).await.status, 200);
    assert_eq!(receiver.handle(signed("somebody-else")).await.status, 401);
}

#[tokio::test]
async fn a_secret_that_cannot_be_kept_makes_the_handshake_fail() {
    let world = World::with(vec![source("asana", "asana")]).await;
    let offer = post("asana", &[("X-Hook-Secret", "chosen")], b"{}");
    let answer = world.send(offer).await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (503, "secret_unavailable")
    );
}

#[tokio::test]
async fn a_provider_that_reads_the_answer_gets_the_words_it_wants() {
    let sources = vec![
        source("dropbox-sign", "dropbox-sign"),
        source("xero", "xero"),
    ];
    let world = World::with(sources).await;
    let hash = hmac_hex(KEY, b"1700000000signature_request_sent");
    let body = format!(
        r#"{{"event":{{"event_time":"1700000000","event_type":"signature_request_sent","event_hash":"{hash}"}}}}"#
    );
    for _ in 0..2 {
        let answer = world.send(post("dropbox-sign", &[], body.as_bytes())).await;
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (200, &b"Hello API Event Received"[..])
        );
    }
    let body = br#"{"events":[{"eventType":"UPDATE"}]}"#;
    let signature = STANDARD.encode(hex::decode(hmac_hex(KEY, body)).unwrap());
    let answer = world
        .send(post("xero", &[("x-xero-signature", &signature)], body))
        .await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}
