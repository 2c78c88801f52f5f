//! What consumers see of attempts.

use crate::world::{Consumer, Reply, World};

#[tokio::test]
async fn an_event_is_delivered_signed_and_written_down_once() {
    let world = World::new().await;
    let consumer = Consumer::replying(|_, _| {
        Reply::status(202)
            .with("x-request-id", "req_1")
            .with("set-cookie", "CANARY")
            .body("thanks")
    })
    .await;
    let subscription = world.subscribe_http("shop", &consumer).await;
    let event = world.event(br#"{"n": 1.0}"#).await;
    world.work(&world.worker()).await;
    let requests = consumer.requests();
    assert_eq!(requests.len(), 1);
    let delivery = World::delivery(event, subscription);
    assert_eq!(requests[0].body, br#"{"n": 1.0}"#);
    assert_eq!(requests[0].headers["webhook-id"], delivery.to_string());
    assert_eq!(requests[0].headers["ce-id"], event.to_string());
    assert_eq!(requests[0].headers["hookstead-attempt"], "1");
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 1));
    let attempts = world.attempts(delivery.as_uuid()).await;
    let [attempt] = &attempts[..] else {
        panic!("one attempt is expected: {attempts:?}")
    };
    assert_eq!(attempt.outcome, "success");
    assert_eq!(attempt.status_code, Some(202));
    assert_eq!(attempt.partner_request_id.as_deref(), Some("req_1"));
    assert!(attempt.ended_at >= attempt.started_at && attempt.latency_ms.is_some());
    assert!(attempt.response_sha256.is_some() && attempt.error_class.is_none());
    let headers = attempt.response_headers.as_ref().unwrap().to_string();
    assert!(headers.contains("req_1") && !headers.contains("CANARY"));
}
