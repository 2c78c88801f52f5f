//! Those who send: providers with webhooks, right and wrong, a business application, and
//! somebody who writes into the queue.

use hookstead_aws::queue::{SendMessages as _, SqsQueue};
use hookstead_receiver::InboundRequest;
use hookstead_signing::Headers;
use hookstead_store::relaying::{PublishRequest, publish};
use hookstead_testkit::role;
use serde_json::json;

use super::canaries::canary;
use crate::ground::Ground;

/// Requests, each with the status that answers it.
pub(super) fn requests(ground: &Ground) -> Vec<(u16, InboundRequest)> {
    let words = [
        ("X-Shop-Token", canary("header")),
        ("Authorization", format!("Bearer {}", canary("auth"))),
        ("Cookie", format!("session={}", canary("cookie"))),
    ];
    let more: Vec<_> = words
        .iter()
        .map(|(name, word)| (*name, word.as_str()))
        .collect();
    let body = json!({ "text": canary("body") }).to_string();
    let signed = |id: &str, body: &str| {
        let mut request = ground.signed(id, &more, body.as_bytes());
        request.raw_query = format!("token={}", canary("inquery"));
        request
    };
    let with = |name: &str, value: &str| {
        let mut request = signed("leaks-other", &body);
        let others = request.headers.iter().filter(|(known, _)| *known != name);
        let others: Vec<_> = others
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        request.headers = Headers::from_pairs(others);
        request.headers.push(name, value);
        request
    };
    let mut unknown = signed("leaks-other", &body);
    unknown.path = format!("/webhooks/{}", canary("source"));
    let mut nowhere = signed("leaks-other", &body);
    nowhere.path = format!("/{}", canary("path"));
    let mut changed = signed("leaks-other", &body);
    changed.body.push(b' ');
    let mut probe = signed("leaks-other", "");
    probe.method = "GET".to_owned();
    let mut put = signed("leaks-other", &body);
    put.method = "PUT".to_owned();
    let escaped = format!("{{\"text\":\"\\u0000{}\"}}", canary("body"));
    vec![
        (200, signed("leaks-1", &body)),
        (200, signed("leaks-1", &body)),
        (200, signed("leaks-2", &escaped)),
        (401, with("X-Hub-Signature-256", &canary("signature"))),
        (401, changed),
        (415, with("Content-Encoding", &canary("coding"))),
        (413, signed("leaks-other", &body.repeat(40_000))),
        (404, unknown),
        (404, nowhere),
        (405, put),
        (200, probe),
    ]
}

/// Announces an event, and tries to announce one that is refused. Gives what the refusal
/// says.
pub(super) async fn announce(ground: &Ground) -> String {
    let (body, key, aggregate) = (canary("outbox"), canary("key"), canary("aggregate"));
    let body = json!({ "text": body }).to_string();
    let request = PublishRequest {
        event_type: "order.placed",
        body: body.as_bytes(),
        content_type: "application/json",
        source: "app",
        aggregate: Some(("order", &aggregate)),
        tenant: None,
        idempotency_key: &key,
        occurred_at: None,
        cause_event_id: None,
        schema_version: None,
    };
    let mut connection = ground.database.connect_as(role::PUBLISHER).await;
    publish(&mut connection, &request).await.unwrap();
    let source = canary("source");
    let refused = PublishRequest {
        source: &source,
        ..request
    };
    let error = publish(&mut connection, &refused).await.unwrap_err();
    let shown = format!("{error} {error:?} {request:?}");
    tracing::error!(error = %error, "an event was refused");
    shown
}

/// Messages that nobody can read.
pub(super) async fn scribble(ground: &Ground) -> Vec<String> {
    let messages = vec![
        canary("message"),
        json!({ "v": 1, "delivery_id": canary("message"), "round": 1 }).to_string(),
        json!({ "v": 99, "text": canary("message") }).to_string(),
    ];
    // Not through the tap: they are what somebody else wrote.
    let aws = ground.aws(&ground.emulator.endpoint());
    let queue = SqsQueue::new(&aws, &ground.deliveries);
    assert!(queue.send(&messages).await.iter().all(Result::is_ok));
    messages
}
