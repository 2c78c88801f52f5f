//! Published vectors: every line of every file in tests/vectors is a test.

use std::path::Path;

use hookstead_signing::vectors::run_vector;

/// Lines of the files we started with; fewer mean that vectors were lost.
const LINES: usize = 611;

#[test]
fn every_published_vector_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut failed = Vec::new();
    let mut lines = 0;
    for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "jsonl")) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            lines += 1;
            let outcome = run_vector(line);
            if let Some(problem) = outcome.problem {
                failed.push(format!("{}/{}: {problem}", outcome.provider, outcome.name));
            }
        }
    }
    assert!(lines >= LINES, "only {lines} vectors were found");
    assert!(
        failed.is_empty(),
        "{} of {lines} vectors failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn a_line_that_is_wrong_is_reported_and_not_skipped() {
    for line in ["", "{}", "not json", r#"{"provider":"x"}"#] {
        assert!(!run_vector(line).passed(), "{line}");
    }
    let good = r#"{"provider":"github","name":"n","secret":"mysecret","method":"POST","url":"https://a.test/","headers":{"X-Hub-Signature-256":"sha256=e3eccac34c43c7dc1cbb905488b1b81347fcc700a7b025697a9d07862256023f","X-GitHub-Event":"ping","X-GitHub-Delivery":"d"},"body_base64":"ewogICJmb28iOiAiYmFyIgp9Cg==","now_unix":1767258000,"expect":"valid","expect_event_id":"d","expect_event_type":"ping"}"#;
    assert_eq!(run_vector(good).problem, None);
    for (from, to) in [
        ("\"valid\"", "\"invalid\""),
        ("\"expect_event_id\":\"d\"", "\"expect_event_id\":\"e\""),
        (
            "\"expect_event_type\":\"ping\"",
            "\"expect_event_type\":null",
        ),
        ("mysecret", "another"),
        ("\"github\"", "\"nobody\""),
    ] {
        assert!(!run_vector(&good.replace(from, to)).passed(), "{to}");
    }
}
