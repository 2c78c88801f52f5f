//! The first minutes with the command, from the first start to the second.

use serde_json::json;

use crate::support::{Dev, Project, event_id, exchange, is_refused, postgres_port};

fn events(project: &Project) -> Vec<serde_json::Value> {
    project
        .run(&["events", "--json"])
        .json()
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_webhook_gets_in_is_found_again_and_survives_a_restart() {
    let project = Project::example();
    let dev = Dev::start(&project);

    let sent = project
        .run(&["send", "stripe", "invoice.paid", "--json"])
        .json();
    assert_eq!(sent["status"], 200);
    let listed = events(&project);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["event_id"], sent["answer"]["event_id"]);
    assert_eq!(listed[0]["event_type"], "invoice.paid");
    assert_eq!(listed[0]["external_event_id"], sent["id"]);

    // The same request twice is one row.
    let request = project
        .run(&["send", "stripe", "invoice.paid", "--print"])
        .bytes;
    let first = event_id(&exchange(dev.address, [&request[..]]));
    let again = exchange(dev.address, [&request[..]]);
    assert_eq!(event_id(&again), first);
    assert!(again.contains("\"duplicate\":true"), "{again}");
    assert_eq!(events(&project).len(), 2);

    // What is pulled is what was sent, byte by byte.
    let (_, body) = crate::support::split(&request);
    let pulled = project.run(&["events", "pull", &first]);
    assert_eq!(pulled.bytes, body);
    let file = project
        .run(&["events", "pull", "last", "--output", "body.json", "--json"])
        .json();
    assert_eq!(file["event_id"], first.as_str());
    assert_eq!(file["bytes"], body.len());
    assert_eq!(std::fs::read(project.path("body.json")).unwrap(), body);

    // The subscription that matches has its delivery; header values stay out without --payload.
    let shown = project.run(&["events", "show", &first]).out;
    assert!(
        shown.contains("billing") && shown.contains("stripe-signature"),
        "{shown}"
    );
    assert!(
        !shown.contains("v1=") && !shown.contains("amount_paid"),
        "{shown}"
    );
    let shown = project.run(&["events", "show", &first, "--payload"]).out;
    assert!(
        shown.contains("v1=") && shown.contains("amount_paid"),
        "{shown}"
    );

    let postgres = postgres_port(&project);
    let port = dev.address.port();
    assert!(dev.stop("-INT").success());
    assert!(is_refused(port) && is_refused(postgres));
    assert!(!project.path(".hookstead/postgres/postmaster.pid").exists());

    let secret = project.secret("stripe-main");
    let second = Dev::start(&project);
    assert_eq!(events(&project).len(), 2);
    assert_eq!(project.secret("stripe-main"), secret);
    assert!(exchange(second.address, [&request[..]]).contains("\"duplicate\":true"));
    assert!(second.stop("-TERM").success());
}

#[test]
fn a_tampered_request_is_refused_and_verify_says_why() {
    let project = Project::example();
    let dev = Dev::start(&project);

    let refused = project.run(&["send", "stripe", "invoice.paid", "--tamper"]);
    // The way to find out why makes the request that was refused, not another one.
    let why = "hookstead send stripe-main invoice.paid --tamper --print | hookstead verify";
    assert!(refused.out.contains(why), "{refused:?}");
    let other = project.run(&["send", "stripe", "--secret", "CANARY", "--id", "a b"]);
    let why = "hookstead send stripe-main --id 'a b' --secret TEXT --print |";
    assert!(other.out.contains(why), "{other:?}");
    assert!(!other.out.contains("CANARY"), "{other:?}");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused
            .out
            .contains("401 {\"error\":\"invalid_signature\"}"),
        "{refused:?}"
    );

    let request = project
        .run(&["send", "stripe", "--tamper", "--print"])
        .bytes;
    let verify = ["verify", "--source", "stripe-main", "--request", "-"];
    let why = project.run_with_input(&verify, &request);
    assert_eq!(why.code, 1, "{why:?}");
    assert!(
        why.out.contains("no signature matches (mismatch)"),
        "{why:?}"
    );
    assert!(
        why.out.contains("AWSCURRENT: made none of the signatures"),
        "{why:?}"
    );
    assert!(project.run(&["events"]).out.contains("No events."));
    assert!(dev.stop("-INT").success());
}

#[test]
fn every_source_of_the_example_takes_its_sample() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let sources = dev.ready["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 6);
    // One has no endpoint.
    for source in sources
        .iter()
        .filter(|source| source["endpoint"].is_string())
    {
        let (name, kind) = (
            source["name"].as_str().unwrap(),
            source["kind"].as_str().unwrap(),
        );
        assert_eq!(source["secret"], project.secret(name).as_str());
        let sent = project.run(&["send", kind, "--source", name]);
        assert_eq!(sent.code, 0, "{sent:?}");
        let by_name = project.run(&["events", "--source", name, "--json"]).json();
        assert_eq!(by_name.as_array().unwrap().len(), 1, "{name}");
    }
    let refused = project.run(&["send", "github", "team_add"]);
    assert!(
        refused
            .out
            .contains("403 {\"error\":\"event_type_not_allowed\"}"),
        "{refused:?}"
    );
    let pushes = project
        .run(&["events", "--type", "pu*", "--since", "1h", "--json"])
        .json();
    assert_eq!(pushes.as_array().unwrap().len(), 1);
    assert!(dev.stop("-INT").success());
}

#[test]
fn send_and_events_name_what_is_there_and_what_is_not() {
    let project = Project::example();
    project.write("named.json", br#"{"id":"evt_mine","type":"charge.failed"}"#);
    project.write("nameless.json", br#"{"type":"charge.failed"}"#);
    let dev = Dev::start(&project);
    let named = project
        .run(&["send", "stripe", "--body", "named.json", "--json"])
        .json();
    assert_eq!(
        (&named["id"], &named["type"]),
        (&json!("evt_mine"), &json!("charge.failed"))
    );
    let nameless = project
        .run(&["send", "stripe", "--body", "nameless.json", "--json"])
        .json();
    assert_eq!(nameless["id"], json!(null));
    let typo = project.run(&["events", "--source", "strpie"]);
    assert_eq!(typo.code, 2);
    assert!(typo.err.contains("unknown_source"), "{}", typo.err);
    assert_eq!(project.run(&["events", "--source", "github"]).code, 0);
    assert!(dev.stop("-INT").success());
}

#[test]
fn secrets_and_bodies_are_in_no_log_and_in_no_answer() {
    let project = Project::example();
    let body = br#"{"id":"evt_canary","type":"invoice.paid","note":"CANARY-BODY"}"#;
    project.write("body.json", body);
    let dev = Dev::start(&project);
    let mut printed = String::new();
    for arguments in [
        &["send", "stripe", "--body", "body.json"][..],
        &["send", "stripe", "--body", "body.json", "--tamper"],
        &["events"],
        &["events", "--json"],
        &["events", "show", "last"],
        &["events", "show", "last", "--json"],
        &["deliveries"],
        &["deliveries", "--json"],
        &["subscriptions"],
        &["subscriptions", "--json"],
        &["report", "show"],
        &["apply", "--plan"],
        &["apply", "--json"],
    ] {
        let finished = project.run(arguments);
        printed.push_str(&finished.out);
        printed.push_str(&finished.err);
    }
    let request = project
        .run(&["send", "stripe", "--body", "body.json", "--print"])
        .bytes;
    for json in [&["--json"][..], &[]] {
        let verify = ["verify", "--source", "stripe-main", "--request", "-"];
        let finished = project.run_with_input(&[&verify[..], json].concat(), &request);
        printed.push_str(&finished.out);
        printed.push_str(&finished.err);
    }
    // The log is not empty: what is searched was written.
    let log = dev.log();
    assert!(log.contains("invalid_signature"), "{log}");
    printed.push_str(&log);
    let postgres = std::fs::read_to_string(project.path(".hookstead/postgres/server.log")).unwrap();
    printed.push_str(&postgres);
    assert!(!printed.contains("CANARY-BODY"), "{printed}");
    // Shown once, when dev got ready.
    for issued in dev.ready["secrets"].as_array().unwrap() {
        let secret = issued["secret"].as_str().unwrap();
        assert!(!printed.contains(secret), "{printed}");
    }
    for source in [
        "stripe-main",
        "github",
        "shopify",
        "standard-webhooks",
        "acme-erp",
    ] {
        assert!(
            !printed.contains(&project.secret(source)),
            "{source}: {printed}"
        );
    }
    assert!(dev.stop("-INT").success());
}

/// Kinds whose requests only the provider can sign: a public key verifies them.
const NOT_OURS_TO_SIGN: [&str; 10] = [
    "aws-sns",
    "discord",
    "fal-ai",
    "paddle-classic",
    "paypal",
    "plaid",
    "sendgrid",
    "standard-webhooks-ed25519",
    "telnyx",
    "wise",
];

#[test]
fn every_other_kind_gets_a_development_secret_and_takes_its_own_sample() {
    let listed = Project::example().run(&["kinds", "--json"]).json();
    let kinds: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["kind"].as_str().unwrap())
        .filter(|kind| !NOT_OURS_TO_SIGN.contains(kind))
        .collect();
    let source = |kind: &&str| {
        let name = kind.replace('.', "-");
        format!("[[source]]\nname = \"{name}\"\nkind = \"{kind}\"\nsecret = \"dev\"\n")
    };
    let project = Project::with(&kinds.iter().map(source).collect::<String>());
    let dev = Dev::start(&project);
    let refused: Vec<String> = kinds
        .iter()
        .filter_map(|kind| {
            let sent = project.run(&["send", kind]);
            (sent.code != 0).then(|| format!("{kind}: {}{}", sent.out, sent.err))
        })
        .collect();
    assert_eq!(refused, Vec::<String>::new());
    let events = project.run(&["events", "--limit", "1000", "--json"]).json();
    assert_eq!(events.as_array().unwrap().len(), kinds.len());
    assert!(dev.stop("-INT").success());
}
