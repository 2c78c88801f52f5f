//! What the local server does with HTTP itself.

use crate::support::{Dev, Project, event_id, exchange, split};

/// The documented limit of a body.
const LIMIT_BYTES: usize = 1_048_576;

/// The head of a signed request with another line in place of its length.
fn head_with(request: &[u8], line: &str) -> Vec<u8> {
    let (head, _) = split(request);
    let head = String::from_utf8(head.to_vec()).unwrap();
    let kept = head
        .lines()
        .filter(|line| !line.starts_with("Content-Length:"));
    let mut lines: Vec<&str> = kept.collect();
    lines.push(line);
    format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}

#[test]
fn rec_19_a_body_in_one_byte_chunks_is_stored_like_any_other() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let request = project.run(&["send", "stripe", "--print"]).bytes;
    let (_, body) = split(&request);
    let mut pieces = vec![head_with(&request, "Transfer-Encoding: chunked")];
    for byte in body {
        pieces.push([b"1\r\n", &[*byte][..], b"\r\n"].concat());
    }
    pieces.push(b"0\r\n\r\n".to_vec());
    let answer = exchange(dev.address, pieces.iter().map(Vec::as_slice));
    let pulled = project.run(&["events", "pull", &event_id(&answer)]);
    assert_eq!(pulled.bytes, body);
}

#[test]
fn rec_11_a_header_byte_outside_ascii_is_kept_and_harms_nothing() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let request = project.run(&["send", "github", "--print"]).bytes;
    let (head, body) = split(&request);
    let pieces = [head, &b"X-Note: test\xee1\r\n\r\n"[..], body];
    let id = event_id(&exchange(dev.address, pieces));
    let shown = project
        .run(&["events", "show", &id, "--payload", "--json"])
        .json();
    assert_eq!(shown["headers"]["x-note"], "test\u{ee}1");
}

#[test]
fn rec_20_a_body_of_exactly_the_limit_is_stored_and_one_byte_more_is_not() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let sized = |id: &str, length: usize| {
        let frame = format!("{{\"id\":\"{id}\",\"type\":\"invoice.paid\",\"pad\":\"\"}}");
        let pad = "x".repeat(length - frame.len());
        frame
            .replace("\"pad\":\"\"", &format!("\"pad\":\"{pad}\""))
            .into_bytes()
    };
    project.write("exact", &sized("evt_exact", LIMIT_BYTES));
    project.write("more", &sized("evt_more", LIMIT_BYTES + 1));
    let exact = project.run(&["send", "stripe", "--body", "exact"]);
    assert_eq!(exact.code, 0, "{exact:?}");
    let more = project.run(&["send", "stripe", "--body", "more"]);
    assert!(
        more.out.contains("413 {\"error\":\"body_too_large\"}"),
        "{more:?}"
    );
    let pulled = project.run(&["events", "pull", "last"]).bytes;
    assert_eq!(pulled, sized("evt_exact", LIMIT_BYTES));
    assert_eq!(
        project
            .run(&["events", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(dev.stop("-INT").success());
}

#[test]
fn other_paths_and_methods_get_their_documented_answers() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let status = |request: &str| exchange(dev.address, [request.as_bytes()])[9..12].to_owned();
    let at = |method: &str, path: &str| format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(status(&at("POST", "/")), "404");
    assert_eq!(status(&at("POST", "/webhooks/nobody")), "404");
    assert_eq!(status(&at("POST", "/webhooks/stripe-main")), "401");
    assert_eq!(status(&at("PUT", "/webhooks/stripe-main")), "405");
    assert_eq!(status(&at("GET", "/webhooks/stripe-main")), "200");
    assert_eq!(status("nonsense\r\n\r\n"), "400");
}
