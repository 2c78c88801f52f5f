//! Following what happens.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use hookstead_testkit::{Fault, FaultProxy};
use serde_json::Value;

use crate::owed::{NAMES, Owed, event_id, run, store};
use crate::support::Project;

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
