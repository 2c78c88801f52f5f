//! What is logged, and what must never be.

use hookstead_testkit::LogCapture;
use serde_json::{Value, json};

use crate::world::{World, acme, custom_source, github, post, with_header};

#[tokio::test]
async fn rec_25_nothing_of_a_refused_request_is_logged_but_its_measures() {
    let world = World::github().await;
    let logs = LogCapture::start();
    let mut request = post(
        "github",
        &[
            ("Authorization", "Bearer CANARY1"),
            ("Cookie", "CANARY2"),
            ("X-Hub-Signature-256", "sha256=CANARY3"),
            ("Content-Type", "CANARY6"),
            ("X-GitHub-Delivery", "CANARY7"),
            ("X-GitHub-Event", "CANARY8"),
        ],
        b"{\"card\":\"CANARY5\"}",
    );
    request.raw_query = "token=CANARY4".to_owned();
    let answer = world.send(request).await;
    assert_eq!(answer.status, 401);
    assert!(!logs.contains("CANARY"), "{}", logs.text());
    assert!(!String::from_utf8_lossy(&answer.body).contains("CANARY"));
    assert!(logs.contains("a request was refused"));
}

#[tokio::test]
async fn a_request_for_no_source_leaves_a_line_with_its_code_and_nothing_it_said() {
    let world = World::github().await;
    let logs = LogCapture::start();
    let large = vec![b'a'; 2 * 1024 * 1024];
    let mut elsewhere = post("", &[], b"CANARY1");
    elsewhere.path = "/CANARY2".to_owned();
    let mut put = github("d-1", b"{}");
    put.method = "PUT".to_owned();
    for (request, code) in [
        (elsewhere, "not_found"),
        (post("CANARY3", &[], b"{}"), "unknown_source"),
        (post("canary-4", &[], b"{}"), "unknown_source"),
        (post("github", &[], &large), "body_too_large"),
        (put, "method_not_allowed"),
    ] {
        world.send(request).await;
        let line = logs.lines().pop().unwrap_or_default();
        assert!(line.contains(code), "{code}: {line}");
    }
    assert!(!logs.contains("CANARY") && !logs.contains("canary"));
}

#[tokio::test]
async fn a_stored_event_leaves_no_payload_header_or_secret_in_the_log() {
    let world = World::github().await;
    let logs = LogCapture::start();
    let mut request = github("CANARY1", b"{\"name\":\"CANARY2\"}");
    request.headers.push("X-Custom", "CANARY3");
    assert_eq!(world.send(request).await.status, 200);
    assert!(!logs.contains("CANARY"), "{}", logs.text());
    assert!(!logs.contains("whk_test_key"));
}

#[tokio::test]
async fn sto_11_database_errors_are_logged_without_values() {
    let world = World::github().await;
    for (n, damage) in [
        "alter table hookstead.events add constraint short check (length(event_type) < 3) not valid",
        "alter table hookstead.events alter column tenant set not null",
        "create unique index canary_once on hookstead.event_keys ((left(external_event_id, 6)))",
        "drop table hookstead.live_deliveries cascade",
    ]
    .iter()
    .enumerate()
    {
        world.execute(damage).await;
        let receiver = world.another_receiver();
        let logs = LogCapture::start();
        let request = github(&format!("CANARY11-{n}"), b"{\"a\":\"CANARY11\"}");
        let request = with_header(request, "X-GitHub-Event", "CANARY11");
        let answer = receiver.handle(request).await;
        assert_eq!(answer.status, 503, "{damage}");
        assert!(logs.contains("SQLSTATE"), "{}", logs.text());
        assert!(!logs.contains("CANARY11"), "{}", logs.text());
        assert!(!String::from_utf8_lossy(&answer.body).contains("CANARY11"));
    }
}

#[tokio::test]
async fn an_unknown_path_or_source_is_not_quoted() {
    let world = World::github().await;
    let logs = LogCapture::start();
    for name in ["canary-token-in-the-path", "CANARY"] {
        assert_eq!(world.send(post(name, &[], b"{}")).await.status, 404);
    }
    assert!(
        !logs.text().to_lowercase().contains("canary"),
        "{}",
        logs.text()
    );
}

/// The fields of the one refusal that was logged.
fn refusal(logs: &LogCapture) -> Value {
    let mut refusals = logs
        .lines()
        .into_iter()
        .filter(|line| line.contains("a request was refused"))
        .map(|line| serde_json::from_str::<Value>(&line).unwrap()["fields"].clone());
    let one = refusals.next().unwrap();
    assert!(refusals.next().is_none());
    one
}

#[tokio::test]
async fn inf_10_a_refusal_can_be_explained_without_the_request() {
    let world = World::with(vec![custom_source("acme")]).await;
    let now = world.clock.now_s();
    let altered = {
        let mut request = acme(now, "a", b"{\"a\":1}");
        request.body[5] = b'2';
        request
    };
    let unsigned = post("acme", &[], b"{}");
    for (request, reason, skew) in [
        (altered, "mismatch", None),
        (acme(now - 1_000, "b", b"{}"), "stale", Some(1_000)),
        (acme(now + 1_000, "c", b"{}"), "future", Some(-1_000)),
        (unsigned, "missing_signature", None),
    ] {
        let logs = LogCapture::start();
        assert_eq!(world.send(request).await.status, 401);
        let fields = refusal(&logs);
        assert_eq!(fields["rejection.reason"], json!(reason));
        assert_eq!(fields["source.name"], json!("acme"));
        if let Some(skew) = skew {
            assert_eq!(fields["rejection.skew_s"], json!(skew), "{reason}");
        }
        assert_eq!(fields["body.sha256"].as_str().unwrap().len(), 64);
        assert!(fields["body.length"].is_number());
    }
}
