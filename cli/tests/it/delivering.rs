//! The whole way on one machine: `dev` receives and delivers, consumers verify, one of
//! them fails, and the control plane hears of it.

use hookstead::sink::{Mode, Received, Sink, SinkOptions};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::net::TcpListener;

use crate::support::{Dev, Project};

/// A secret for reports. Anybody may know it: it is made for this test.
const REPORT_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn sink(mode: Mode) -> Sink {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = SinkOptions {
        mode,
        ..SinkOptions::default()
    };
    Sink::start(listener, options).unwrap()
}

/// A project with two consumers of everything; the second is given up after two retries.
fn project(good: &Sink, bad: &Sink) -> Project {
    let subscription = |name: &str, sink: &Sink, more: &str| {
        format!(
            "[[subscription]]\nname = \"{name}\"\n\
             destination = {{ kind = \"http\", url = \"{}/{name}\", allow_http = true }}\n{more}\n",
            sink.url()
        )
    };
    let manifest = [
        "[[source]]\nname = \"stripe\"\nkind = \"stripe\"\nsecret = \"dev\"\n".to_owned(),
        "[[source]]\nname = \"app\"\nkind = \"outbox\"\n".to_owned(),
        subscription("good", good, ""),
        subscription("bad", bad, "retry = { schedule_s = [0, 0], jitter = 0 }"),
    ];
    Project::with(&manifest.concat())
}

/// The signing secret of a subscription, as `dev` showed it.
fn issued(dev: &Dev, subscription: &str) -> String {
    let secrets = dev.ready["secrets"].as_array().unwrap();
    let found = secrets
        .iter()
        .find(|secret| secret["subscription"] == subscription);
    found.unwrap()["secret"].as_str().unwrap().to_owned()
}

/// Verifies with the published library what arrived.
fn assert_verifies(secret: &str, received: &Received) {
    let mut headers = http::HeaderMap::new();
    for (name, value) in received.headers.iter() {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let webhook = Webhook::new(secret).unwrap();
    webhook.verify(&received.body, &headers).unwrap();
}

/// The deliveries of a subscription as the command lists them.
async fn deliveries(project: &Project, subscription: &str) -> Vec<Value> {
    let list = ["deliveries", "--subscription", subscription, "--json"];
    let listed = project.run_with(&[], &list).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    listed.as_array().unwrap().clone()
}

/// Waits until the database says so. The consumer knows of an attempt before it is
/// written down.
async fn until_state(project: &Project, subscription: &str, state: &str) -> Value {
    loop {
        let found = deliveries(project, subscription).await;
        if let Some(delivery) = found.into_iter().find(|one| one["state"] == state) {
            return delivery;
        }
    }
}

#[tokio::test]
async fn an_event_reaches_every_consumer_and_the_one_that_fails_alone_is_given_up() {
    let (good, bad) = (sink(Mode::Ok).await, sink(Mode::Status(503)).await);
    let project = project(&good, &bad);
    let dev = Dev::start(&project);
    let body = r#"{"id":"evt_1","type":"invoice.paid","amount":1.0,"name":"Zoë"}"#;
    let file = project.write("body.json", body.as_bytes());
    let send = ["send", "stripe", "--body", file.to_str().unwrap()];
    let sent = project.run_with(&[], &send).await;
    assert_eq!(sent.code, 0, "{sent:?}");

    let arrived = &good.wait_for(1).await[0];
    assert_eq!(arrived.body, body.as_bytes());
    assert_verifies(&issued(&dev, "good"), arrived);
    let attempts = bad.wait_for(3).await;
    let numbers: Vec<_> = attempts.iter().map(|one| one.attempt).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
    for attempt in &attempts {
        assert_verifies(&issued(&dev, "bad"), attempt);
        assert_eq!(attempt.webhook_id, attempts[0].webhook_id);
    }
    let dead = until_state(&project, "bad", "dead_letter").await;
    assert_eq!(dead["state_reason"], "budget_spent", "{dead}");
    until_state(&project, "good", "succeeded").await;
    assert_eq!(good.counts().received, 1, "who does not fail is left alone");
    while !dev.log().contains("a delivery was given up") {
        tokio::task::yield_now().await;
    }
    assert!(!dev.log().contains("Zoë"), "no payload in the log");
    assert!(dev.stop("-INT").success());
}

#[tokio::test]
async fn what_is_published_and_what_is_switched_off_takes_the_same_way() {
    let (good, bad) = (sink(Mode::Ok).await, sink(Mode::Status(410)).await);
    let project = project(&good, &bad);
    let dev = Dev::start(&project);
    let publish = [
        "publish",
        "order.placed",
        "--source",
        "app",
        "--data",
        "{\"order\": 1042}",
    ];
    assert_eq!(project.run_with(&[], &publish).await.code, 0);
    let arrived = good.wait_for(2).await;
    let mut types: Vec<_> = arrived
        .iter()
        .filter_map(|one| one.event_type.clone())
        .collect();
    types.sort();
    // A 410 switches its subscription off, and whoever takes everything is told so.
    assert_eq!(types, ["order.placed", "subscription.disabled"]);
    assert_eq!(bad.counts().received, 1);
    let list = ["subscriptions", "list", "--json"];
    let listed = project.run_with(&[], &list).await.json();
    let off = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "bad");
    assert_eq!(off.unwrap()["disabled_reason"], json!("gone"), "{listed}");
    assert!(dev.stop("-INT").success());
}

#[tokio::test]
async fn the_control_plane_gets_the_very_bytes_that_report_show_prints() {
    let (good, bad, control) = (
        sink(Mode::Ok).await,
        sink(Mode::Status(500)).await,
        sink(Mode::Ok).await,
    );
    let project = project(&good, &bad);
    let environment = [
        ("HOOKSTEAD_CONTROL_PLANE_URL", control.url()),
        (
            "HOOKSTEAD_CONTROL_PLANE_SECRET",
            "env:REPORT_SECRET".to_owned(),
        ),
        ("REPORT_SECRET", REPORT_SECRET.to_owned()),
    ];
    let environment: Vec<_> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let dev = Dev::start_with(&project, &environment);
    assert_eq!(project.run_with(&[], &["send", "stripe"]).await.code, 0);
    bad.wait_for(3).await;
    let dead = until_state(&project, "bad", "dead_letter").await;
    let succeeded = until_state(&project, "good", "succeeded").await;
    let mut expected = Vec::new();
    for delivery in [&dead, &succeeded] {
        let id = delivery["delivery_id"].as_str().unwrap();
        let shown = project.run_with(&[], &["report", "show", id]).await;
        assert_eq!(shown.code, 0, "{shown:?}");
        expected.extend(shown.out.lines().map(|line| format!("{line}\n")));
    }
    assert_eq!(expected.len(), 4, "three attempts and one: {expected:?}");
    let mut shipped = Vec::new();
    let mut requests = 1;
    while shipped.len() < expected.len() {
        shipped.clear();
        for request in control.wait_for(requests).await {
            assert_verifies(REPORT_SECRET, &request);
            let text = String::from_utf8(request.body.to_vec()).unwrap();
            shipped.extend(text.split_inclusive('\n').map(str::to_owned));
        }
        requests += 1;
    }
    shipped.sort();
    expected.sort();
    assert_eq!(shipped, expected);
    assert!(dev.stop("-INT").success());
}
