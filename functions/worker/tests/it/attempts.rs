//! What consumers see of attempts.

use std::collections::HashSet;
use std::sync::Arc;

use hookstead_egress::{Egress, EgressSettings};
use hookstead_testkit::{Fault, FaultProxy, role};
use hookstead_worker::destinations::HttpDestination;
use hookstead_worker::{Destinations, Worker, WorkerSettings};
use serde_json::json;

use crate::signatures::{http, is_signed_by};
use crate::world::{Consumer, PlainSecrets, Reply, SECRET, World, connections, until, worker_over};

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
    assert!(is_signed_by(&requests[0], SECRET));
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

#[tokio::test]
async fn out_02_the_id_outlives_failures_a_crash_and_a_replay() {
    let world = World::new().await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let consumer = Consumer::start(move |_, number| {
        let opened = Arc::clone(&opened);
        Box::pin(async move {
            if number != 4 {
                return Reply::status(500);
            }
            drop(opened.acquire().await);
            Reply::status(200)
        })
    })
    .await;
    let policy = json!({"jitter": 0, "schedule_s": [0, 0, 0, 0, 0]});
    let subscription = world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    let event = world.event(b"{}").await;
    let delivery = World::delivery(event, subscription);
    for _ in 0..3 {
        world.work(&world.worker()).await;
    }
    // The fourth is answered with 200, and its worker dies before it writes that down.
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let connections = connections(&proxy.url(), 2);
    let dying = worker_over(connections.clone(), connections, Default::default(), |_| {});
    let messages = world.messages().await;
    let processing = tokio::spawn(async move { dying.process(messages).await });
    // It is claimed and sent; nothing of what follows is written.
    consumer.wait_for(4).await;
    proxy.set(Fault::Refuse);
    proxy.cut();
    gate.add_permits(1);
    let refused = proxy.accepted();
    until(|| async { proxy.accepted() > refused }).await;
    processing.abort();
    world.expire_leases().await;
    world.reap().await;
    world.work(&world.worker()).await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.state, "dead_letter");
    world.replay(delivery, 1).await;
    world.work(&world.worker()).await;
    let requests = consumer.requests();
    let ids: HashSet<_> = requests
        .iter()
        .map(|request| request.headers["webhook-id"].clone())
        .collect();
    assert_eq!(requests.len(), 7);
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [delivery.to_string()]);
}

#[tokio::test]
async fn out_02_no_two_deliveries_share_an_id() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    for name in ["one", "two"] {
        world.subscribe_http(name, &consumer).await;
    }
    for _ in 0..3 {
        world.event(b"{}").await;
    }
    world.work(&world.worker()).await;
    let requests = consumer.requests();
    let ids: HashSet<_> = requests
        .iter()
        .map(|request| request.headers["webhook-id"].clone())
        .collect();
    assert_eq!((requests.len(), ids.len()), (6, 6));
}

#[tokio::test]
async fn out_15_what_is_signed_is_what_is_sent_at_first_again_and_in_a_replay() {
    let world = World::new().await;
    let consumer =
        Consumer::replying(|_, number| Reply::status(if number == 1 { 500 } else { 200 })).await;
    let subscription = world.subscribe_http("shop", &consumer).await;
    let body = "{\"é\":\"\u{1F600} \\u00e9\", \"n\": 1.0,\"big\":1e5 ,\"deep\":{\"a\":[{}, []]}}\n";
    let event = world.event(body.as_bytes()).await;
    let worker = world.worker();
    world.work(&worker).await;
    world.work(&worker).await;
    world.replay(World::delivery(event, subscription), 1).await;
    world.work(&worker).await;
    let requests = consumer.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(is_signed_by(&request, SECRET));
        assert_eq!(request.body, body.as_bytes());
    }
}

#[tokio::test]
async fn out_15_a_structured_event_is_signed_as_it_is_sent() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    let mut destination = consumer.destination("shop");
    destination["mode"] = json!("structured");
    destination["headers"] = json!({"x-route": "a", "webhook-signature": "x", "WEBHOOK-ID": "y"});
    world.subscribe("shop", destination, json!({})).await;
    world.event(br#"{"n":1.0}"#).await;
    world.work(&world.worker()).await;
    let requests = consumer.requests();
    assert!(is_signed_by(&requests[0], SECRET));
    assert_eq!(
        requests[0].headers["content-type"],
        "application/cloudevents+json"
    );
    assert_eq!(requests[0].headers["x-route"], "a");
    let body = String::from_utf8(requests[0].body.clone()).unwrap();
    assert!(body.contains(r#""data":{"n":1.0}"#), "{body}");
}

#[tokio::test]
async fn out_18_an_internal_target_in_a_row_is_refused_in_attempt_retry_and_replay() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    let policy = json!({"schedule_s": [0], "jitter": 0});
    let subscription = world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    let event = world.event(b"{}").await;
    let egress = Egress::new(EgressSettings::default()).unwrap();
    let http = HttpDestination::new(egress, Arc::new(PlainSecrets));
    let destinations = Destinations::new().with("http", http);
    let worker = Worker::new(
        world.connections(1),
        destinations,
        WorkerSettings::named("guarded"),
    );
    let delivery = World::delivery(event, subscription);
    world.work(&worker).await;
    world.work(&worker).await;
    world.replay(delivery, 1).await;
    world.work(&worker).await;
    let classes: Vec<_> = world
        .attempts(delivery.as_uuid())
        .await
        .into_iter()
        .map(|attempt| attempt.error_class.unwrap())
        .collect();
    assert_eq!(classes, ["address_not_allowed"; 3]);
    assert_eq!(consumer.requests().len(), 0);
}

#[tokio::test]
async fn a_destination_that_cannot_be_read_is_refused_and_the_rest_of_the_batch_is_not() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("good", &consumer).await;
    let odd = [
        ("unknown_kind", json!({"kind": "carrier-pigeon"})),
        ("settings", json!({"kind": "http"})),
        (
            "settings",
            json!({"kind": "http", "url": "https://x", "mode": "upside_down"}),
        ),
        ("invalid_url", json!({"kind": "http", "url": "//"})),
        (
            "not_https",
            json!({"kind": "http", "url": consumer.url("x")}),
        ),
        ("no_handlers", json!({"kind": "handler", "name": "x"})),
    ];
    for (number, (_, destination)) in odd.iter().enumerate() {
        world
            .subscribe(&format!("odd-{number}"), destination.clone(), json!({}))
            .await;
    }
    world.event(b"{}").await;
    let http = http();
    let destinations = Destinations::new().with("http", http);
    let worker = Worker::new(
        world.connections(1),
        destinations,
        WorkerSettings::named("test"),
    );
    world.work(&worker).await;
    assert_eq!(world.ended("succeeded").await, 1);
    let mut details = Vec::new();
    for row in world.live().await {
        let attempt = world.attempts(row.delivery_id).await.remove(0);
        let class = attempt.error_class.unwrap();
        assert!(
            ["invalid_destination", "handler_missing"].contains(&&*class),
            "{class}"
        );
        details.push(attempt.error_detail.unwrap());
    }
    details.sort();
    let mut expected: Vec<_> = odd.iter().map(|(detail, _)| *detail).collect();
    expected.sort_unstable();
    assert_eq!(details, expected);
}

#[tokio::test]
async fn a_subscription_without_a_secret_is_not_delivered_to_and_not_blamed() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    world
        .execute(
            "update hookstead.subscriptions set secret_current = null, secret_current_key = null",
        )
        .await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.state, "pending");
    assert_eq!(row.last_error_class.as_deref(), Some("secret_unavailable"));
    let failures = world
        .number("select consecutive_failures::bigint from hookstead.subscriptions")
        .await;
    assert_eq!((failures, consumer.requests().len()), (0, 0));
}
