//! Subscriptions: their secrets, adding, trying, switching off and on.

use std::os::unix::fs::PermissionsExt as _;

use hookstead::sink::{Mode, Sink, SinkOptions};
use hookstead_signing::Secret;
use hookstead_testkit::{TestDatabase, role};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::support::{Dev, Finished, Project};

/// A project beside a database of somebody else's, with a key file and this machine
/// allowed.
struct World {
    project: Project,
    _database: TestDatabase,
    url: String,
    key_file: String,
}

impl World {
    async fn new(manifest: &str) -> Self {
        let database = hookstead_testkit::database().await;
        let project = Project::with(manifest);
        Self {
            key_file: project.path("keys").display().to_string(),
            project,
            url: database.url_as(role::ADMIN),
            _database: database,
        }
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        let environment = [
            ("HOOKSTEAD_DATABASE_URL", self.url.as_str()),
            ("HOOKSTEAD_KEY_FILE", self.key_file.as_str()),
            ("HOOKSTEAD_ALLOW_PRIVATE", "127.0.0.0/8"),
        ];
        self.project.run_with(&environment, arguments).await
    }
}

fn secret_of(answer: &Value) -> String {
    answer["secrets"][0]["secret"].as_str().unwrap().to_owned()
}

const POSTS: &str = "[[subscription]]\nname = \"a\"\n\
    destination = { kind = \"http\", url = \"https://h.example/\" }\n\
    [[subscription]]\nname = \"p\"\ndestination = { kind = \"pull\" }\n";

#[tokio::test]
async fn applying_issues_one_secret_for_what_posts_and_shows_it_once() {
    let world = World::new(POSTS).await;
    let planned = world.run(&["apply", "--plan", "--json"]).await.json();
    assert_eq!(planned["without_secret"], serde_json::json!(["a"]));
    let applied = world.run(&["apply", "--json"]).await.json();
    assert_eq!(applied["secrets"].as_array().unwrap().len(), 1);
    assert_eq!(applied["secrets"][0]["subscription"], "a");
    assert!(secret_of(&applied).starts_with("whsec_"));
    let mode = std::fs::metadata(&world.key_file)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = world.run(&["apply", "--json"]).await.json();
    assert_eq!(again["secrets"], serde_json::json!([]));
    let listed = world.run(&["subscriptions", "--json"]).await;
    assert!(!listed.out.contains(&secret_of(&applied)), "{listed:?}");
    assert_eq!(listed.json()[0]["has_secret"], true);
    assert_eq!(listed.json()[1]["has_secret"], false);
}

#[tokio::test]
async fn without_a_key_nothing_is_issued_and_it_is_said() {
    let world = World::new(POSTS).await;
    let environment = [("HOOKSTEAD_DATABASE_URL", world.url.as_str())];
    let applied = world
        .project
        .run_with(&environment, &["apply", "--json"])
        .await;
    assert!(applied.err.contains("warning[no_key]: a "), "{applied:?}");
    assert_eq!(applied.json()["without_secret"], serde_json::json!(["a"]));
    let add = ["subscriptions", "add", "x", "--url", "https://h.example/"];
    let refused = world.project.run_with(&environment, &add).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("error[no_key]"), "{refused:?}");
}

/// Adds a subscription that posts to a sink which verifies with its secret.
async fn added(world: &World) -> Sink {
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://{}/hooks?token=CANARY",
        reserved.local_addr().unwrap()
    );
    let add = [
        "subscriptions",
        "add",
        "mine",
        "--url",
        &url,
        "--allow-http",
        "-H",
        "X-Key: CANARY",
        "--type",
        "invoice.*",
        "--json",
    ];
    let added = world.run(&add).await.json();
    let options = SinkOptions {
        secrets: vec![Secret::new(secret_of(&added)).unwrap()],
        ..SinkOptions::default()
    };
    let taken = world.run(&add).await;
    assert_eq!(taken.code, 1, "{taken:?}");
    assert!(taken.err.contains("error[name_taken]"), "{taken:?}");
    Sink::start(reserved, options).unwrap()
}

#[tokio::test]
async fn a_subscription_is_tried_as_deliveries_are_sent() {
    let world = World::new("").await;
    let sink = added(&world).await;
    let test = ["subscriptions", "test", "mine", "--json"];
    assert_eq!(world.run(&test).await.json()["status"], 200);
    let received = &sink.received()[0];
    assert_eq!(received.verified, Some(true));
    assert_eq!(received.event_type.as_deref(), Some("hookstead.test"));
    assert_eq!(received.headers.first("x-key"), Some("CANARY"));
    assert_eq!(received.attempt, Some(1));
    sink.set_mode(Mode::Status(500));
    let tried = world.run(&["subscriptions", "test", "mine"]).await;
    assert_eq!(tried.code, 1, "{tried:?}");
    assert!(tried.out.contains("500"), "{tried:?}");
    sink.stop().await;
    let tried = world.run(&test).await;
    assert_eq!(tried.code, 1, "{tried:?}");
    assert!(tried.out.contains("connection_refused"), "{tried:?}");
    // Without the allowance of its address it is not even called.
    let environment = [
        ("HOOKSTEAD_DATABASE_URL", world.url.as_str()),
        ("HOOKSTEAD_KEY_FILE", world.key_file.as_str()),
    ];
    let tried = world.project.run_with(&environment, &test).await;
    assert!(tried.out.contains("address_not_allowed"), "{tried:?}");
    let other_key = world.project.path("other").display().to_string();
    let environment = [environment[0], ("HOOKSTEAD_KEY_FILE", other_key.as_str())];
    let tried = world.project.run_with(&environment, &test).await;
    assert!(tried.err.contains("error[key_unusable]"), "{tried:?}");
}

#[tokio::test]
async fn an_added_subscription_is_switched_off_and_on_and_survives_applying() {
    let world = World::new("").await;
    added(&world).await;
    let off = [
        "subscriptions",
        "disable",
        "mine",
        "--reason",
        "maintenance",
        "--json",
    ];
    assert_eq!(world.run(&off).await.json()["changed"], true);
    assert_eq!(world.run(&off).await.json()["changed"], false);
    let listed = world.run(&["subscriptions"]).await.out;
    assert!(
        listed.contains("maintenance") && listed.contains("command"),
        "{listed}"
    );
    let all = world.run(&["subscriptions", "--json"]).await.out;
    assert!(
        !listed.contains("CANARY") && !all.contains("CANARY"),
        "{listed}{all}"
    );
    let on = ["subscriptions", "enable", "mine", "--rearm", "--json"];
    let on = world.run(&on).await.json();
    assert_eq!((&on["changed"], &on["rearmed"]), (&true.into(), &0.into()));
    let applied = world.run(&["apply", "--json"]).await.json();
    assert_eq!(applied["changes"], serde_json::json!([]));
    let listed = world.run(&["subscriptions", "--json"]).await.json();
    assert_eq!(listed[0]["disabled_at"], Value::Null);
}

#[tokio::test]
async fn what_cannot_be_called_or_sent_is_refused_before_it_is_saved() {
    let world = World::new("").await;
    for (arguments, code) in [
        (&["--url", "http://h.example/"][..], "invalid_url"),
        (&["--url", "https://u:p@h.example/"], "invalid_url"),
        (
            &["--url", "https://169.254.169.254/"],
            "address_not_allowed",
        ),
        (&["--url", "https://[::1]/"], "address_not_allowed"),
        (
            &["--url", "https://h.example/", "-H", "Host: x"],
            "connection_header",
        ),
        (
            &["--url", "https://h.example/", "-H", "webhook-id: x"],
            "reserved_header",
        ),
        (
            &["--url", "https://h.example/", "--source", "nobody"],
            "unknown_source",
        ),
        (
            &["--url", "https://h.example/", "--filter", "$ ?"],
            "invalid_filter",
        ),
    ] {
        let all = [&["subscriptions", "add", "x"], arguments].concat();
        let refused = world.run(&all).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.err.contains(&format!("error[{code}]")),
            "{refused:?}"
        );
    }
    assert!(
        world
            .run(&["subscriptions"])
            .await
            .out
            .contains("No subscriptions.")
    );
    for arguments in [
        &["subscriptions", "test", "x"][..],
        &["subscriptions", "disable", "x"],
        &["subscriptions", "enable", "x"],
    ] {
        let refused = world.run(arguments).await;
        assert!(
            refused.err.contains("error[unknown_subscription]"),
            "{refused:?}"
        );
    }
}

#[test]
fn dev_allows_this_machine_and_keeps_a_key_and_other_addresses_are_refused() {
    let manifest = "[[subscription]]\nname = \"a\"\n\
        destination = { kind = \"http\", url = \"http://127.0.0.1:9/\", allow_http = true }\n";
    let project = Project::with(manifest);
    let dev = Dev::start(&project);
    let secret = secret_of(&dev.ready);
    assert!(secret.starts_with("whsec_"));
    let mode = std::fs::metadata(project.path(".hookstead/keys"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // What dev allows, apply allows as well.
    assert_eq!(project.run(&["apply"]).code, 0);
    let elsewhere = manifest.replace("127.0.0.1", "10.0.0.1");
    project.write("hookstead.toml", elsewhere.as_bytes());
    let refused = project.run(&["apply"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("[address_not_allowed]"), "{refused:?}");
    assert!(refused.err.contains("hookstead.toml:3:"), "{refused:?}");
    let log = dev.log();
    assert!(!log.contains(&secret), "{log}");
    assert!(dev.stop("-INT").success());

    project.write("hookstead.toml", manifest.as_bytes());
    let refused = project.run(&["dev", "--listen", "127.0.0.1:0", "--allow-private", ""]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("[address_not_allowed]"), "{refused:?}");
    let second = Dev::start(&project);
    assert_eq!(second.ready["secrets"], serde_json::json!([]));
    assert!(second.stop("-INT").success());
}
