//! Verdicts without a server.

use crate::support::{Project, repository};

const VECTORS: &str = "shared/signing/tests/vectors/vectors.jsonl";

/// A manifest whose sources use one secret from a file.
const MANIFEST: &str = "[[source]]\nname = \"s\"\nkind = \"stripe\"\nsecret = \"file:key\"\n\
                        [[source]]\nname = \"g\"\nkind = \"github\"\nsecret = \"file:key\"\n";

fn project() -> Project {
    let project = Project::with(MANIFEST);
    project.write("key", b"CANARY-key\n");
    project
}

/// A signed request for a source, printed by `send`.
fn signed(project: &Project, arguments: &[&str]) -> Vec<u8> {
    let sent = project.run(&[&["send"], arguments, &["--print"]].concat());
    assert_eq!(sent.code, 0, "{sent:?}");
    sent.bytes
}

#[test]
fn the_published_vectors_all_pass() {
    let project = project();
    let file = repository(VECTORS);
    let lines = std::fs::read_to_string(&file).unwrap().lines().count();
    let finished = project.run(&["verify", "--vectors", file.to_str().unwrap()]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(finished.out, format!("{lines} passed, 0 failed\n"));
}

#[test]
fn failing_vectors_are_named_and_counted() {
    let project = project();
    let good = std::fs::read_to_string(repository(VECTORS)).unwrap();
    let first = good.lines().next().unwrap();
    assert!(first.contains("\"expect\": \"valid\""), "{first}");
    let wrong = first.replace("\"expect\": \"valid\"", "\"expect\": \"invalid\"");
    project.write(
        "some.jsonl",
        format!("{first}\n\n{wrong}\nnot json\n").as_bytes(),
    );
    let finished = project.run(&["verify", "--vectors", "some.jsonl"]);
    assert_eq!(finished.code, 1, "{finished:?}");
    let lines: Vec<&str> = finished.out.lines().collect();
    assert!(
        lines[0].starts_with("FAIL github/docs_hello_world: verifies"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("FAIL line 4: "), "{lines:?}");
    assert_eq!(lines[2..], ["1 passed, 2 failed"]);

    let input = std::fs::read(project.path("some.jsonl")).unwrap();
    let finished = project.run_with_input(&["verify", "--vectors", "-", "--json"], &input);
    assert_eq!(finished.code, 1, "{finished:?}");
    let tally: serde_json::Value = serde_json::from_str(&finished.out).unwrap();
    assert_eq!((&tally["passed"], &tally["failed"]), (&1.into(), &2.into()));
    assert_eq!(tally["failures"][1]["line"], 4);
}

#[test]
fn a_good_request_verifies_and_shows_what_would_be_stored() {
    let project = project();
    let request = signed(&project, &["stripe", "invoice.paid", "--id", "evt_7"]);
    let verify = ["verify", "--source", "s", "--request", "-", "--json"];
    let answer = project.run_with_input(&verify, &request).json();
    assert_eq!(answer["verified"], true);
    assert_eq!(answer["event"]["id"], "evt_7");
    assert_eq!(answer["event"]["type"], "invoice.paid");
    assert_eq!(answer["candidates"][0]["label"], "AWSCURRENT");
    assert_eq!(answer["candidates"][0]["matched"], true);
}

#[test]
fn every_way_to_fail_has_its_reason_and_no_output_holds_the_secret() {
    let project = project();
    project.write("other", b"another secret");
    let good = signed(&project, &["stripe"]);
    let tampered = signed(&project, &["stripe", "--tamper"]);
    let stripped = String::from_utf8(good.clone()).unwrap();
    let stripped = stripped
        .replace("Stripe-Signature:", "X-Other:")
        .into_bytes();
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let late = (now + 1_000).to_string();
    for (request, more, code) in [
        (&tampered, &["--source", "s"][..], "mismatch"),
        (
            &good,
            &["--source", "s", "--secret-file", "other"],
            "mismatch",
        ),
        (&stripped, &["--source", "s"], "missing_signature"),
        (&good, &["--source", "s", "--now", &late], "stale"),
        (
            &good,
            &["--kind", "github", "--secret-file", "key"],
            "missing_signature",
        ),
    ] {
        for json in [&["--json"][..], &[]] {
            let arguments = [&["verify", "--request", "-"][..], more, json].concat();
            let finished = project.run_with_input(&arguments, request);
            assert_eq!(finished.code, 1, "{arguments:?} {finished:?}");
            assert!(finished.out.contains(code), "{arguments:?} {finished:?}");
            let all = format!("{}{}", finished.out, finished.err);
            assert!(!all.contains("CANARY"), "{all}");
        }
    }
    let within = [
        "verify",
        "--request",
        "-",
        "--source",
        "s",
        "--now",
        &late,
        "--tolerance-s",
        "2000",
    ];
    assert_eq!(project.run_with_input(&within, &good).code, 0);
}

#[test]
fn a_request_can_be_given_in_parts() {
    let project = project();
    project.write("hello", b"Hello, World!");
    project.write("docs-key", b"It's a Secret to Everybody");
    let header = "X-Hub-Signature-256: \
        sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let verify = [
        "verify",
        "--kind",
        "github",
        "--secret-file",
        "docs-key",
        "--body",
        "hello",
    ];
    let with_header = [&verify[..], &["-H", "X-GitHub-Event: push", "-H", header]].concat();
    let finished = project.run(&with_header);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(finished.out.contains("event type: push"), "{finished:?}");
}

#[test]
fn all_versions_of_a_secret_are_tried_and_named() {
    let project = project();
    let request = signed(&project, &["stripe"]);
    std::fs::rename(project.path("key"), project.path("key.previous")).unwrap();
    project.write("key", b"the new one");
    let verify = ["verify", "--source", "s", "--request", "-"];
    let finished = project.run_with_input(&verify, &request);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(
        finished.out.contains("AWSPREVIOUS: made a signature"),
        "{finished:?}"
    );
    assert!(
        finished.out.contains("AWSCURRENT: made none"),
        "{finished:?}"
    );
}

#[test]
fn a_compressed_body_is_judged_as_the_scheme_signs_it() {
    use std::io::Write as _;
    let project = project();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"{\"id\":1}").unwrap();
    project.write("body.gz", &encoder.finish().unwrap());
    let request = signed(&project, &["github", "push", "--body", "body.gz"]);
    let at = request.windows(6).position(|six| six == b"Host: ").unwrap();
    let coded = [
        &request[..at],
        b"Content-Encoding: gzip\r\n",
        &request[at..],
    ]
    .concat();
    let finished = project.run_with_input(&["verify", "--source", "g", "--request", "-"], &coded);
    assert_eq!(finished.code, 0, "{finished:?}");
}

#[test]
fn a_source_s_own_dedupe_rule_shows_in_the_key() {
    let key_with = |rule: &str| {
        let project = Project::with(&format!("{MANIFEST}dedupe = \"{rule}\"\n"));
        project.write("key", b"CANARY-key\n");
        let request = signed(&project, &["github", "push", "--id", "evt_7"]);
        let verify = ["verify", "--source", "g", "--request", "-", "--json"];
        project.run_with_input(&verify, &request).json()["event"]["dedupe_key"].clone()
    };
    assert_eq!(key_with("header:X-GitHub-Event"), "push");
    assert!(key_with("every-arrival").is_null());
}

#[test]
fn a_saved_request_that_lost_or_gained_bytes_is_told_so() {
    let project = project();
    let request = [&signed(&project, &["stripe"])[..], b"\n"].concat();
    let verify = ["verify", "--source", "s", "--request", "-"];
    let finished = project.run_with_input(&verify, &request);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(
        finished.out.contains("hint: Content-Length says"),
        "{finished:?}"
    );
}

#[test]
fn what_the_receiver_refuses_for_another_reason_is_said() {
    let project = Project::example();
    let secret = "a key for a test";
    project.write("key", secret.as_bytes());
    let request = |more: &[&str]| {
        let send = ["send", "github", "--secret-file", "key", "--print"];
        project.run(&[&send[..], more].concat()).bytes
    };
    let with_coding = |request: &[u8], coding: &str| {
        let head = format!("POST / HTTP/1.1\r\nContent-Encoding: {coding}");
        let end = request.windows(2).position(|two| two == b"\r\n").unwrap();
        [head.as_bytes(), &request[end..]].concat()
    };
    let push = request(&["push"]);
    for (request, exit, said) in [
        (push.clone(), 0, "event type: push"),
        (request(&["nope"]), 1, "403 event_type_not_allowed"),
        (with_coding(&push, "br"), 1, "415 unsupported_coding"),
        // The receiver keeps what verifies over the bytes of the wire.
        (with_coding(&push, "gzip"), 0, "event type: push"),
    ] {
        let verify = ["verify", "--source", "github", "--secret-file", "key"];
        let verify = [&verify[..], &["--request", "-"]].concat();
        let finished = project.run_with_input(&verify, &request);
        assert_eq!(finished.code, exit, "{finished:?}");
        assert!(finished.out.contains(said), "{finished:?}");
    }
}
