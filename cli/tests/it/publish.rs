//! Publishing events of one's own.

use hookstead_testkit::{TestDatabase, role};

use crate::support::{Dev, Finished, Project};

const SOURCES: &str = "[[source]]\nname = \"app\"\nkind = \"outbox\"\n\
    allowed_event_types = [\"order.*\"]\n\
    [[source]]\nname = \"gh\"\nkind = \"github\"\nsecret = \"dev\"\n";

/// A project whose sources are in a database, seen as the publisher.
struct World {
    project: Project,
    database: TestDatabase,
    publisher: String,
}

impl World {
    async fn new() -> Self {
        let database = hookstead_testkit::database().await;
        let project = Project::with(SOURCES);
        let admin = database.url_as(role::ADMIN);
        let url = [("HOOKSTEAD_DATABASE_URL", admin.as_str())];
        let applied = project.run_with(&url, &["apply"]).await;
        assert_eq!(applied.code, 0, "{applied:?}");
        Self {
            project,
            publisher: database.url_as(role::PUBLISHER),
            database,
        }
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        let url = [("HOOKSTEAD_DATABASE_URL", self.publisher.as_str())];
        self.project.run_with(&url, arguments).await
    }
}

#[tokio::test]
async fn an_event_is_published_with_the_bytes_that_were_given() {
    let world = World::new().await;
    let data = "{ \"order\": 1.0 }";
    let publish = [
        "publish",
        "order.placed",
        "--data",
        data,
        "--key",
        "k-1",
        "--about",
        "order/1",
        "--json",
    ];
    let published = world.run(&publish).await.json();
    assert_eq!(
        (&published["key"], &published["bytes"]),
        (&"k-1".into(), &data.len().into())
    );
    world.project.write("raw.bin", &[0xff, 0x00]);
    let raw = [
        "publish",
        "order.raw",
        "--file",
        "raw.bin",
        "--content-type",
        "application/x-raw",
    ];
    assert_eq!(world.run(&raw).await.code, 0);
    let mut superuser = world.database.connect().await;
    let rows: Vec<(String, Vec<u8>, String, String)> = sqlx::query_as(
        "select event_type, payload, content_type, aggregate_type
         from hookstead.outbox order by event_type",
    )
    .fetch_all(&mut superuser)
    .await
    .unwrap();
    let expected = [
        ("order.placed", data.as_bytes(), "application/json", "order"),
        ("order.raw", &[0xff, 0x00], "application/x-raw", "event"),
    ];
    let expected = expected.map(|(event_type, body, content_type, aggregate)| {
        (
            event_type.to_owned(),
            body.to_vec(),
            content_type.to_owned(),
            aggregate.to_owned(),
        )
    });
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn what_is_refused_says_why_and_the_role_can_do_nothing_else() {
    let world = World::new().await;
    for (arguments, exit, code) in [
        (
            &["publish", "invoice.paid"][..],
            1,
            "event_type_not_allowed",
        ),
        (
            &["publish", "order.x", "--source", "nobody"],
            1,
            "unknown_source",
        ),
        (
            &["publish", "order.x", "--source", "gh"],
            1,
            "not_an_outbox_source",
        ),
        (
            &["publish", "order.x", "--source", "hookstead"],
            1,
            "reserved_source",
        ),
        (&["publish", "order.x", "--key", " "], 1, "invalid_argument"),
        (
            &["publish", "order.x", "--data", "{CANARY"],
            2,
            "invalid_json",
        ),
        (
            &["publish", "order.x", "--file", "absent"],
            2,
            "file_unusable",
        ),
        (&["events"], 3, "database_refused"),
    ] {
        let refused = world.run(arguments).await;
        assert_eq!(refused.code, exit, "{refused:?}");
        assert!(
            refused.err.contains(&format!("error[{code}]")),
            "{refused:?}"
        );
        assert!(!refused.err.contains("CANARY"), "{refused:?}");
    }
}

#[test]
fn a_source_of_the_outbox_has_no_endpoint_and_says_what_to_do() {
    let project = Project::with(SOURCES);
    let dev = Dev::start(&project);
    let sources = dev.ready["sources"].as_array().unwrap();
    assert_eq!(sources[0]["endpoint"], serde_json::Value::Null);
    assert_eq!(sources[0]["secret"], serde_json::Value::Null);
    let published = project.run(&["publish", "order.placed"]);
    assert_eq!(published.code, 0, "{published:?}");
    for arguments in [&["send", "app"][..], &["verify", "--source", "app"]] {
        let refused = project.run(arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("error[no_endpoint]"), "{refused:?}");
        assert!(
            refused.err.contains("hookstead publish TYPE --source app"),
            "{refused:?}"
        );
    }
    assert!(dev.stop("-INT").success());
}
