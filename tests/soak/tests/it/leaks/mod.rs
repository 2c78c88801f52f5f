//! Nothing that is somebody's own is where it does not belong: canaries go in wherever
//! something can go in, and everything that comes out anywhere is searched for them.

mod canaries;
mod consumers;
mod senders;
mod tables;
mod tap;

use std::collections::BTreeSet;
use std::time::Duration;

use hookstead_aws::queue::{MAX_ENTRIES, ReceiveMessages as _, SqsQueue};
use hookstead_testkit::{LogCapture, role};
use serde_json::Value;
use sqlx::Connection as _;

use self::canaries::{Finder, canary};
use self::consumers::{Consumers, Sent};
use self::tap::Tap;
use crate::child::{CONTROL_PLANE, LOST_AFTER_MS};
use crate::ground::Ground;
use crate::processes::{Process, Processes, Role};
use crate::waiting::until_none_left;

/// For how long the queue hides what was received. Short: what nobody can read goes to
/// the queue of dead letters only after it was received several times.
const VISIBILITY_S: u32 = 2;

/// Everything, so that what libraries log counts too. But not what the SDK of AWS writes
/// below INFO, which is whole calls, names of destinations and answers included: whoever
/// starts a log must hold that back, as these processes do here.
const LOG: &str = "trace,aws_sigv4=info,aws_smithy_runtime=info";

/// Longest wait of one look into the queue of dead letters.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after which what is missing there counts as lost.
const MOST_LOOKS: usize = 100;

/// Classes of failures that must have happened, or too little was tried.
const CLASSES: [&str; 15] = [
    "address_not_allowed",
    "client_error",
    "dns_failure",
    "gone",
    "handler_failed",
    "handler_missing",
    "handler_panicked",
    "handler_retry",
    "invalid_destination",
    "invalid_response",
    "redirect",
    "server_error",
    "target_refused",
    "timeout",
    "truncated_body",
];

/// What came out, by where.
#[derive(Default)]
struct Found {
    finder: Option<Finder>,
    leaks: Vec<String>,
    bytes: usize,
}

impl Found {
    fn search(&mut self, place: &str, bytes: impl AsRef<[u8]>) {
        let finder = self.finder.get_or_insert_with(Finder::new);
        self.bytes += bytes.as_ref().len();
        if let Some(shown) = finder.find(bytes.as_ref()) {
            self.leaks.push(format!("{place}: …{shown}…"));
        }
    }
}

/// Dropped in this order: the processes' outputs are in the ground's folder.
struct Scene {
    running: Vec<Process>,
    processes: Processes,
    tap: Tap,
    consumers: Consumers,
    reports: Sent,
    ground: Ground,
    customers_queue: String,
}

#[tokio::test]
async fn no_canary_is_anywhere_but_where_it_belongs() {
    let _alone = crate::ALONE.lock().await;
    let mut found = Found::default();
    let mut scene = Scene::set().await;
    let scribbled = scene.play(&mut found).await;
    scene.until_all_is_over().await;
    scene.check_that_enough_happened().await;
    scene.search_queues(&mut found, &scribbled).await;
    scene.search_database(&mut found).await;
    for batch in scene.reports.lock().unwrap().iter() {
        found.search("a batch of reports", batch);
    }
    for process in scene.running.drain(..) {
        process.kill().await;
    }
    for (name, output) in scene.processes.outputs() {
        for line in output.split(|byte| *byte == b'\n') {
            found.search(&format!("the output of {name}{}", origin(line)), line);
        }
    }
    println!("leaks: {} bytes searched", found.bytes);
    assert!(found.leaks.is_empty(), "\n  {}\n", found.leaks.join("\n  "));
}

/// Where in the code a line of a log comes from.
fn origin(line: &[u8]) -> String {
    let line: Value = serde_json::from_slice(line).unwrap_or_default();
    format!(", {} {}", line["level"], line["target"])
}

impl Scene {
    async fn set() -> Self {
        let ground = Ground::new(&canary("sourcesecret"), VISIBILITY_S).await;
        ground
            .execute(
                "create schema shop;
                 create table shop.effects (event_id uuid not null, attempt bigint not null);
                 create table shop.numbers (number integer not null);
                 grant usage on schema shop to hookstead_worker;
                 grant insert on shop.effects, shop.numbers to hookstead_worker",
            )
            .await;
        let secret = canaries::secret("controlplane");
        std::fs::write(ground.folder().join("control-plane"), secret).unwrap();
        let tap = Tap::before(&ground.emulator.endpoint()).await;
        let customers_queue = ground.emulator.create_queue("customer", &[]).await;
        let consumers = Consumers::start().await;
        consumers.subscribe_all(&ground, &customers_queue).await;
        let (control_plane, reports) = consumers::control_plane().await;
        let mut processes = Processes::new(&ground, &tap.endpoint(), LOG)
            .with(CONTROL_PLANE, control_plane.url("reports"))
            .with(LOST_AFTER_MS, 60_000);
        let running = [Role::Worker, Role::Relay].map(|role| processes.start(role));
        // It serves until the process of the tests ends.
        std::mem::forget(control_plane);
        Self {
            ground,
            tap,
            consumers,
            reports,
            processes,
            running: running.into(),
            customers_queue,
        }
    }

    /// Sends everything in, and searches what comes back at once.
    async fn play(&self, found: &mut Found) -> Vec<String> {
        let logs = LogCapture::start();
        let receiver = self.ground.receiver(&self.tap.endpoint(), 1);
        for (status, request) in senders::requests(&self.ground) {
            let about = format!("{} {}", request.method, request.body.len());
            let answer = receiver.handle(request).await;
            assert_eq!(answer.status, status, "{about}");
            found.search(&format!("the answer {status}"), format!("{answer:?}"));
            found.search(&format!("the answer {status}"), &answer.body);
        }
        found.search(
            "a refusal to publish",
            senders::announce(&self.ground).await,
        );
        let scribbled = senders::scribble(&self.ground).await;
        assert!(logs.contains("an event was stored"), "nothing was logged");
        for line in logs.lines() {
            found.search("the log of the receiver", line);
        }
        scribbled
    }

    /// Waits until nothing is left to do: no delivery, no announcement, no report.
    async fn until_all_is_over(&self) {
        let left = "select (select count(*) from hookstead.live_deliveries)
            + (select count(*) from hookstead.outbox)
            + (select count(*) from hookstead.reports)
            + (select count(*) from hookstead.dead_letter_notices)
            + (select count(*) from hookstead.subscriptions where name = 'gone' and disabled_at is null)";
        until_none_left("rows", || self.ground.number(left)).await;
    }

    /// A search finds nothing where nothing happened.
    async fn check_that_enough_happened(&mut self) {
        for process in &mut self.running {
            process.assert_running();
        }
        let mut connection = self.ground.database.connect().await;
        let classes: Vec<String> = sqlx::query_scalar(
            "select distinct error_class from hookstead.attempts where error_class is not null",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let classes: BTreeSet<_> = classes.iter().map(String::as_str).collect();
        let missing: Vec<_> = CLASSES
            .iter()
            .filter(|class| !classes.contains(*class))
            .collect();
        assert!(missing.is_empty(), "{missing:?} of {classes:?}");
        let sent = self.consumers.sent.lock().unwrap().concat();
        let sent = String::from_utf8_lossy(&sent);
        for word in ["body", "outbox", "path", "query", "outheader", "outauth"] {
            let word = canary(word);
            let word = &word[..word.len() - 8];
            assert!(sent.contains(word), "no consumer was sent {word}");
        }
        assert!(
            self.reports.lock().unwrap().len() >= 2,
            "nothing was reported"
        );
    }

    /// What was sent to our own queues, and what stands on that of dead letters.
    async fn search_queues(&self, found: &mut Found, scribbled: &[String]) {
        let (mut ours, mut others) = (0, 0);
        for request in self.tap.requests() {
            let text = String::from_utf8_lossy(&request);
            if text.contains(&self.ground.deliveries) || text.contains(&self.ground.dead_letters) {
                ours += 1;
                found.search("a call of our queues", &request);
            } else {
                // Destinations get what they are sent.
                others += 1;
                let to_customer =
                    text.contains(&self.customers_queue) || text.contains("AWSEvents");
                assert!(to_customer || text.contains("/functions/"), "{text}");
            }
        }
        assert!(ours > 10 && others > 1, "{ours} and {others} calls");
        let letters = "select count(*) from hookstead.done_deliveries where state = 'dead_letter'";
        let letters = usize::try_from(self.ground.number(letters).await).unwrap();
        let aws = self.ground.aws(&self.ground.emulator.endpoint());
        let queue = SqsQueue::new(&aws, &self.ground.dead_letters);
        let (mut notices, mut unread) = (0, BTreeSet::new());
        let mut looks = 0;
        while notices < letters || unread.len() < scribbled.len() {
            looks += 1;
            assert!(
                looks < MOST_LOOKS,
                "{notices} of {letters} notices, {unread:?}"
            );
            let received = queue.receive(MAX_ENTRIES, LOOK).await.unwrap();
            let receipts: Vec<_> = received.iter().map(|one| one.receipt.clone()).collect();
            for message in received {
                if scribbled.contains(&message.body) {
                    unread.insert(message.body);
                } else {
                    notices += 1;
                    found.search("a message on the queue of dead letters", message.body);
                }
            }
            assert!(queue.delete(&receipts).await.iter().all(Result::is_ok));
        }
    }

    async fn search_database(&self, found: &mut Found) {
        let mut support = self.ground.database.connect_as(role::SUPPORT).await;
        let mut columns = tables::columns(&mut support).await;
        assert!(columns.len() > 30, "support sees nothing");
        support.close().await.unwrap();
        let mut everything = self.ground.database.connect().await;
        columns.extend(tables::columns(&mut everything).await);
        for (column, text) in columns {
            if !tables::BELONG.contains(&column.as_str()) {
                found.search(&column, text);
            } else if column == "events.raw_body" || column == "events.headers" {
                let finder = Finder::new();
                assert!(
                    finder.find(text.as_bytes()).is_some(),
                    "{column} has no canary"
                );
            }
        }
    }
}
