//! Consumers that answer in every way there is, each answer full of canaries.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::canaries::{canary, secret};
use crate::ground::Ground;
use crate::http::{Reply, Request, Server};

/// What a destination or a control plane was sent, as it came.
pub(super) type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

pub(super) struct Consumers {
    server: Server,
    pub(super) sent: Sent,
}

impl Consumers {
    pub(super) async fn start() -> Self {
        let sent = Sent::default();
        let kept = Arc::clone(&sent);
        let server = Server::start(move |request| {
            keep(&kept, &request);
            answer(&request)
        })
        .await;
        Self { server, sent }
    }

    /// Subscribes each of them, and handlers and queues besides, to everything.
    pub(super) async fn subscribe_all(&self, ground: &Ground, customers_queue: &str) {
        let subscribe = async |name: &str, destination: Value| {
            let secret = secret("subscription");
            ground.subscribe(name, destination, policy(), &secret).await;
        };
        for way in WAYS {
            subscribe(way, self.http(way)).await;
        }
        let mut structured = self.http("ok");
        structured["mode"] = json!("structured");
        subscribe("structured", structured).await;
        let port = self.server.port();
        let (word, query) = (canary("url"), canary("query"));
        for (name, url) in [
            ("tls", format!("https://127.0.0.1:{port}/{word}?{query}")),
            ("dns", format!("https://{word}.invalid/{word}?{query}")),
            (
                "userinfo",
                format!("http://{word}:{query}@127.0.0.1:{port}/{word}"),
            ),
            ("private", format!("https://10.0.0.1/{word}?{query}")),
        ] {
            let destination = json!({ "kind": "http", "url": url, "allow_http": true });
            subscribe(name, destination).await;
        }
        for name in ["effect", "retries", "fails", "panics", "refused", "missing"] {
            let subscription = format!("handler-{name}");
            subscribe(&subscription, json!({ "kind": "handler", "name": name })).await;
        }
        let missing = format!("{customers_queue}-{}", canary("queue"));
        subscribe(
            "queue",
            json!({ "kind": "sqs", "queue_url": customers_queue }),
        )
        .await;
        subscribe("no-queue", json!({ "kind": "sqs", "queue_url": missing })).await;
        subscribe(
            "bus",
            json!({ "kind": "eventbridge", "bus": canary("bus") }),
        )
        .await;
        subscribe(
            "function",
            json!({ "kind": "lambda", "function": canary("function") }),
        )
        .await;
    }

    fn http(&self, way: &str) -> Value {
        let path = format!("{way}/{}?token={}", canary("path"), canary("query"));
        json!({
            "kind": "http",
            "url": self.server.url(&path),
            "allow_http": true,
            "headers": { "X-Api-Key": canary("outheader"), "Authorization": canary("outauth") },
        })
    }
}

/// A control plane that refuses the first batch.
pub(super) async fn control_plane() -> (Server, Sent) {
    let sent = Sent::default();
    let kept = Arc::clone(&sent);
    let server = Server::start(move |request| {
        keep(&kept, &request);
        let first = kept.lock().unwrap().len() == 1;
        whole(if first { 500 } else { 200 })
    })
    .await;
    (server, sent)
}

fn keep(sent: &Sent, request: &Request) {
    let bytes = [request.head.as_bytes(), &request.body].concat();
    sent.lock().unwrap().push(bytes);
}

/// What consumers do, by the first part of the path.
const WAYS: [&str; 8] = [
    "ok", "fails", "refuses", "gone", "moved", "garbage", "cut", "hangs",
];

fn answer(request: &Request) -> Reply {
    let way = request.path.split('/').nth(1).unwrap_or_default();
    let word = canary("answer");
    match way {
        "ok" => whole(200),
        "fails" => whole(500),
        "refuses" => whole(422),
        "gone" => whole(410),
        "moved" => whole(302),
        "garbage" => Reply::Last(format!("{word}\r\n\r\n").into_bytes()),
        "cut" => {
            let cut = format!("HTTP/1.1 200 {word}\r\ncontent-length: 5000\r\n\r\n{word}");
            Reply::Last(cut.into_bytes())
        }
        _ => Reply::Never,
    }
}

fn whole(status: u16) -> Reply {
    let word = canary("answer");
    let location = format!("https://{word}.example/{word}");
    let cookie = format!("session={word}");
    let headers = [
        ("location", location.as_str()),
        ("set-cookie", cookie.as_str()),
        ("x-internal", word.as_str()),
        ("www-authenticate", word.as_str()),
        ("content-type", "text/plain"),
    ];
    Reply::whole(&format!("{status} {word}"), &headers, &word)
}

/// Two attempts, soon after each other: fewer failures than pause a subscription.
fn policy() -> Value {
    json!({
        "schedule_s": [0.1],
        "jitter": 0,
        "timeout_ms": 1000,
        "max_age_s": 3600,
        "give_up_after_identical": null,
    })
}
