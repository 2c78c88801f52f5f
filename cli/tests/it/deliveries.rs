//! Deliveries, their attempts and reports, and following what happens.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use hookstead_domain::{DeliveryId, EventId, SubscriptionId};
use hookstead_testkit::{Fault, FaultProxy, TestDatabase, role};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::support::{Finished, Project};

/// A database with one event that three subscriptions are owed: one has it, one waits
/// after a failure, one gave it up.
struct Owed {
    project: Project,
    database: TestDatabase,
    admin_url: String,
    superuser: PgConnection,
    event: EventId,
}

const NAMES: [&str; 3] = ["a-has-it", "b-waits", "c-gave-up"];

impl Owed {
    async fn new() -> Self {
        let database = hookstead_testkit::database().await;
        let superuser = database.connect().await;
        let mut owed = Self {
            project: Project::with(""),
            admin_url: database.url_as(role::ADMIN),
            database,
            superuser,
            event: event_id(1),
        };
        owed.run_sql(
            "insert into hookstead.sources (name, kind) values ('app', 'stripe');
             insert into hookstead.subscriptions (name, destination)
             select name, '{\"kind\": \"pull\"}' from unnest('{a-has-it,b-waits,c-gave-up}'::text[]) as n (name);
             update hookstead.installation set reporting_since = now()",
        )
        .await;
        store(&mut owed.superuser, owed.event).await;
        owed.end(0, "succeeded", "null", "success", "null").await;
        owed.end(2, "dead_letter", "'gone'", "fail", "'gone'").await;
        let waits = owed.delivery(1).await;
        owed.run_sql(&format!(
            "update hookstead.live_deliveries
             set attempt_count = 1, last_attempt_at = now(), last_error_class = 'timeout'
             where delivery_id = '{waits}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, outcome, error_class)
             values ('{waits}', 1, 1, now(), now(), 'retry', 'timeout')"
        ))
        .await;
        owed
    }

    async fn run_sql(&mut self, sql: &str) {
        run(&mut self.superuser, sql).await;
    }

    async fn delivery(&mut self, number: usize) -> DeliveryId {
        let id: Uuid = sqlx::query_scalar(
            "select subscription_id from hookstead.subscriptions where name = $1",
        )
        .bind(NAMES[number])
        .fetch_one(&mut self.superuser)
        .await
        .unwrap();
        DeliveryId::derive(self.event, SubscriptionId::from_uuid(id))
    }

    /// Ends a delivery with one attempt, as a worker does.
    async fn end(&mut self, number: usize, state: &str, reason: &str, outcome: &str, class: &str) {
        let delivery = self.delivery(number).await;
        self.run_sql(&format!(
            "insert into hookstead.done_deliveries (
                 delivery_id, event_id, subscription_id, created_at, last_attempt_at, round,
                 attempt_count, attempt_budget, state, state_reason, last_error_class)
             select delivery_id, event_id, subscription_id, created_at, now(), round, 1,
                    attempt_budget, '{state}', {reason}, {class}
             from hookstead.live_deliveries where delivery_id = '{delivery}';
             delete from hookstead.live_deliveries where delivery_id = '{delivery}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, latency_ms, status_code,
                 outcome, error_class)
             values ('{delivery}', 1, 1, now(), now(), 7, 200, '{outcome}', {class})"
        ))
        .await;
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        let url = [("HOOKSTEAD_DATABASE_URL", self.admin_url.as_str())];
        self.project.run_with(&url, arguments).await
    }

    async fn names(&self, arguments: &[&str]) -> Vec<String> {
        let listed = self.run(&[arguments, &["--json"]].concat()).await.json();
        let rows = listed.as_array().unwrap().iter();
        let mut names: Vec<String> = rows
            .map(|row| row["subscription"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .unwrap();
}

/// Stores an event with a delivery for each subscription, as ingest does.
async fn store(connection: &mut PgConnection, event: EventId) {
    run(
        connection,
        &format!(
            "insert into hookstead.events (
                 event_id, source_id, external_event_id, event_type, raw_body, content_type, headers,
                 signature_verified, received_at, schema_version)
             select '{event}', source_id, '{event}', 'invoice.paid', 'CANARY', 'text/plain', '[]',
                    false, now(), '1'
             from hookstead.sources where name = 'app';
             insert into hookstead.live_deliveries (
                 delivery_id, event_id, subscription_id, next_attempt_at, attempt_budget)
             select hookstead.delivery_id('{event}', subscription_id), '{event}', subscription_id,
                    now(), 10
             from hookstead.subscriptions"
        ),
    )
    .await;
}

fn event_id(number: u8) -> EventId {
    let now = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    EventId::new(u64::try_from(now).unwrap(), [number; 10])
}

#[tokio::test]
async fn deliveries_are_listed_by_state_subscription_and_event() {
    let owed = Owed::new().await;
    assert_eq!(owed.names(&["deliveries"]).await, NAMES);
    assert_eq!(
        owed.names(&["deliveries", "--state", "pending"]).await,
        ["b-waits"]
    );
    let over = [
        "deliveries",
        "--state",
        "succeeded",
        "--state",
        "dead_letter",
    ];
    assert_eq!(owed.names(&over).await, ["a-has-it", "c-gave-up"]);
    let one = ["deliveries", "list", "--subscription", "c-gave-up"];
    assert_eq!(owed.names(&one).await, ["c-gave-up"]);
    let event = owed.event.to_string();
    assert_eq!(owed.names(&["deliveries", "--event", &event]).await, NAMES);
    assert_eq!(owed.names(&["deliveries", "--event", "last"]).await, NAMES);
    assert_eq!(
        owed.names(&["deliveries", "--since", "1h", "--limit", "2"])
            .await
            .len(),
        2
    );
    let table = owed.run(&["deliveries"]).await.out;
    assert!(
        table.contains("gone: gone") && table.contains("1/10"),
        "{table}"
    );
    let shown = owed.run(&["events", "show", "last"]).await.out;
    assert!(
        shown.contains("dead_letter") && shown.contains("gone"),
        "{shown}"
    );
    for (arguments, code, exit) in [
        (
            &["deliveries", "--subscription", "nobody"][..],
            "unknown_subscription",
            2,
        ),
        (
            &["deliveries", "show", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
        (
            &["attempts", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
        (
            &["report", "show", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
    ] {
        let refused = owed.run(arguments).await;
        assert_eq!(refused.code, exit, "{refused:?}");
        assert!(
            refused.err.contains(&format!("error[{code}]")),
            "{refused:?}"
        );
    }
    for wrong in [&["deliveries", "--state", "done"][..], &["attempts", "x"]] {
        assert_eq!(owed.run(wrong).await.code, 2);
    }
}

#[tokio::test]
async fn one_delivery_and_its_attempts_are_shown_and_never_a_payload() {
    let mut owed = Owed::new().await;
    let delivery = owed.delivery(2).await.to_string();
    let shown = owed
        .run(&["deliveries", "show", &delivery, "--json"])
        .await
        .json();
    assert_eq!(shown["subscription"], "c-gave-up");
    assert_eq!(shown["rounds"][0]["state_reason"], "gone");
    assert_eq!(shown["attempts"][0]["error_class"], "gone");
    let text = owed.run(&["deliveries", "show", &delivery]).await.out;
    assert!(
        text.contains("dead_letter since") && text.contains("7 ms"),
        "{text}"
    );
    let attempts = owed.run(&["attempts", &delivery, "--json"]).await.json();
    assert_eq!(attempts, shown["attempts"]);
    assert!(
        owed.run(&["attempts", &delivery])
            .await
            .out
            .contains("7 ms")
    );
    let waits = owed.delivery(1).await.to_string();
    let text = owed.run(&["deliveries", "show", &waits]).await.out;
    assert!(text.contains("pending, due "), "{text}");
    for output in [text, shown.to_string(), attempts.to_string()] {
        assert!(!output.contains("CANARY"), "{output}");
    }
}

#[tokio::test]
async fn a_report_is_printed_as_the_bytes_that_are_sent() {
    let mut owed = Owed::new().await;
    let delivery = owed.delivery(2).await;
    let text = delivery.to_string();
    let shown = owed.run(&["report", "show", &text]).await;
    let mut admin = owed.database.connect_as(role::ADMIN).await;
    let reports = hookstead_store::relaying::reports_of(&mut admin, delivery)
        .await
        .unwrap();
    assert_eq!(reports.len(), 1);
    let expected = format!("{}\n", serde_json::to_string(&reports[0]).unwrap());
    assert_eq!(String::from_utf8(shown.bytes).unwrap(), expected);
    let array = owed.run(&["report", "show", &text, "--json"]).await.json();
    assert_eq!(array[0]["job_id"], text);
    // Nothing waits: these attempts were not written by a worker.
    let pending = owed.run(&["report", "show", "--pending"]).await;
    assert_eq!((pending.code, pending.out.as_str()), (0, ""));
    owed.run_sql(&format!(
        "insert into hookstead.reports (
             report_id, schema_version, instance_id, job_id, status, attempt_count, processed_at)
         select gen_random_uuid(), 1, instance_id, '{text}', 'dead_letter', 1, now()
         from hookstead.installation"
    ))
    .await;
    let pending = owed.run(&["report", "show"]).await;
    let line: Value = serde_json::from_str(&pending.out).unwrap();
    assert_eq!(
        (&line["job_id"], &line["status"]),
        (&text.into(), &"dead_letter".into())
    );
}

/// A running `tail --json`. Dropping it kills it.
struct Tail {
    child: Child,
    told: BufReader<ChildStderr>,
    lines: BufReader<ChildStdout>,
}

impl Tail {
    fn start(project: &Project, url: &str, arguments: &[&str]) -> Self {
        let mut command = project.command(&[&["tail", "--json"], arguments].concat());
        let mut child = command
            .env("HOOKSTEAD_DATABASE_URL", url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            told: BufReader::new(child.stderr.take().unwrap()),
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Waits for the next line that it says beside its answer.
    fn told(&mut self) -> String {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Ends it as Ctrl-C does; what it had still to print.
    fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &pid]).status();
        assert!(told.unwrap().success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn what_happens_is_printed_once_as_soon_as_it_is_visible() {
    let mut owed = Owed::new().await;
    let mut tail = Tail::start(&owed.project, &owed.admin_url, &[]);
    assert!(tail.told().contains("Following"));
    // One commits late: the time in it is before that of the other, which is printed first.
    let (late, other) = (event_id(8), event_id(9));
    let mut holding = owed.database.connect().await;
    run(&mut holding, "begin").await;
    store(&mut holding, late).await;
    store(&mut owed.superuser, other).await;
    let first = tail.next();
    assert_eq!(first["what"], "event");
    assert_eq!(first["event_id"], other.to_string());
    run(&mut holding, "commit").await;
    assert_eq!(tail.next()["event_id"], late.to_string());
    owed.event = other;
    owed.end(0, "succeeded", "null", "success", "null").await;
    let attempt = tail.next();
    assert_eq!(attempt["what"], "attempt");
    assert_eq!(attempt["subscription"], NAMES[0]);
    let ended = tail.next();
    assert_eq!(ended["what"], "delivery");
    assert_eq!(ended["state"], "succeeded");
    assert_eq!(tail.stop(), "");
}

#[tokio::test]
async fn following_goes_on_when_the_database_was_away() {
    let mut owed = Owed::new().await;
    let proxy = FaultProxy::start(&owed.admin_url).await;
    let mut tail = Tail::start(&owed.project, &proxy.url(), &[]);
    let mut tail = tokio::task::spawn_blocking(move || {
        assert!(tail.told().contains("Following"));
        tail
    })
    .await
    .unwrap();
    proxy.set(Fault::Refuse);
    proxy.cut();
    let tail = tokio::task::spawn_blocking(move || {
        assert!(tail.told().contains("warning[database_unreachable]"));
        tail
    });
    let mut tail = tail.await.unwrap();
    let meanwhile = event_id(9);
    store(&mut owed.superuser, meanwhile).await;
    proxy.set(Fault::None);
    let tail = tokio::task::spawn_blocking(move || {
        assert_eq!(tail.next()["event_id"], meanwhile.to_string());
        tail
    });
    let tail = tail.await.unwrap();
    let rest = tokio::task::spawn_blocking(move || tail.stop())
        .await
        .unwrap();
    assert_eq!(rest, "");
}

#[tokio::test]
async fn what_happened_before_can_be_asked_for() {
    let owed = Owed::new().await;
    let mut tail = Tail::start(&owed.project, &owed.admin_url, &["--since", "1h"]);
    let happened: Vec<Value> = (0..6).map(|_| tail.next()).collect();
    let count = |what: &str| happened.iter().filter(|one| one["what"] == what).count();
    assert_eq!(
        (count("event"), count("attempt"), count("delivery")),
        (1, 3, 2)
    );
    let refused = owed.run(&["tail", "--since", "3d"]).await;
    assert!(refused.err.contains("since_too_old"), "{refused:?}");
}
