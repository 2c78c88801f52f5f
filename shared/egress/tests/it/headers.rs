//! OUT-11 and OUT-21: which headers come back and which go out.

use hookstead_domain::Outcome;
use hookstead_egress::webhook::{CustomHeaders, MAX_CUSTOM_HEADERS, MAX_VALUE_BYTES};
use http::HeaderValue;

use crate::server::{Server, ok};
use crate::support::{body, client, header_lines, http, post, values};

/// What comes of an answer with these header lines.
async fn outcome(status: u16, lines: &str) -> Outcome {
    let answer = format!("HTTP/1.1 {status} X\r\n{lines}content-length: 0\r\n\r\n");
    let server = Server::answering(answer).await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    answer.outcome(time::OffsetDateTime::UNIX_EPOCH)
}

fn wait(outcome: &Outcome) -> Option<u64> {
    match outcome {
        Outcome::Retry { wait, .. } | Outcome::Defer { wait, .. } => {
            wait.map(|wait| wait.as_secs())
        }
        _ => None,
    }
}

#[tokio::test]
async fn out_11_retry_after_is_handed_over_as_it_was_sent() {
    for (lines, expected) in [
        ("Retry-After: 120\r\n", Some(120)),
        ("retry-after: Thu, 01 Jan 1970 00:02:00 GMT\r\n", Some(120)),
        ("Retry-After: 30\r\nRETRY-AFTER: 120\r\n", Some(120)),
        ("Retry-After: 99999999999999999999\r\n", Some(86_400)),
        ("Retry-After: -5\r\n", None),
        ("Retry-After: abc\r\n", None),
        ("Retry-After: 1e9\r\n", None),
        ("Retry-After: Wed, 31 Dec 1969 00:00:00 GMT\r\n", None),
        ("Retry-After: \u{fc}\r\n", None),
        ("", None),
    ] {
        assert_eq!(wait(&outcome(429, lines).await), expected, "{lines}");
    }
}

#[tokio::test]
async fn a_consumer_can_refine_its_success() {
    assert_eq!(
        outcome(200, "Hookstead-Outcome: skipped\r\n")
            .await
            .as_str(),
        "skip"
    );
    let deferred = outcome(202, "hookstead-outcome: deferred\r\nretry-after: 7\r\n").await;
    assert_eq!((deferred.as_str(), wait(&deferred)), ("defer", Some(7)));
    assert_eq!(
        outcome(200, "Hookstead-Outcome: later\r\n").await,
        Outcome::Success
    );
}

#[tokio::test]
async fn the_other_sides_id_of_the_request_is_kept() {
    let long = "r".repeat(1000);
    for (lines, id) in [
        ("x-amzn-RequestId: abc\r\n", Some("abc")),
        (
            "Request-Id: req_1\r\nX-Request-Id: first\r\n",
            Some("first"),
        ),
        (&*format!("X-Request-Id: {long}\r\n"), Some(&long[..256])),
        ("Set-Cookie: a=b\r\n", None),
    ] {
        let server = Server::answering(format!("HTTP/1.1 204 X\r\n{lines}\r\n")).await;
        let answer = client().send(post(http(server.port()))).await.unwrap();
        assert_eq!(answer.partner_request_id.as_deref(), id);
    }
}

#[tokio::test]
async fn a_request_is_written_with_one_host_and_one_length() {
    let server = Server::answering(ok("fine")).await;
    let mut request = post(http(server.port()));
    for (name, value) in [
        ("host", "evil.example"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "close, x-mine"),
        ("keep-alive", "1"),
        ("te", "trailers"),
        ("expect", "100-continue"),
        ("upgrade", "h2c"),
        ("x-mine", "kept"),
    ] {
        request
            .headers
            .append(name, HeaderValue::from_static(value));
    }
    client().send(request).await.unwrap();
    let request = &server.requests()[0];
    assert!(request.starts_with(b"POST /in?key=1 HTTP/1.1\r\n"));
    let mut lines = header_lines(request);
    lines.sort();
    let names: Vec<_> = lines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-length", "host", "x-mine"]);
    assert_eq!(values(request, "content-length"), ["7"]);
    assert_eq!(body(request), b"{\"a\":1}");
}

#[test]
fn out_21_headers_that_are_ours_are_refused_at_save() {
    for (name, code) in [
        ("webhook-signature", "reserved_header"),
        ("Webhook-Id", "reserved_header"),
        ("WEBHOOK-TIMESTAMP", "reserved_header"),
        ("webhook-anything", "reserved_header"),
        ("webhook_signature", "reserved_header"),
        ("content-type", "reserved_header"),
        ("Content-Encoding", "reserved_header"),
        ("ce-id", "reserved_header"),
        ("CE-Later", "reserved_header"),
        ("hookstead-attempt", "reserved_header"),
        ("traceparent", "reserved_header"),
        ("User-Agent", "reserved_header"),
        ("Host", "connection_header"),
        ("content-length", "connection_header"),
        ("Content_Length", "connection_header"),
        ("Transfer-Encoding", "connection_header"),
        ("connection", "connection_header"),
        ("Keep-Alive", "connection_header"),
        ("proxy-authorization", "connection_header"),
        ("TE", "connection_header"),
        ("Upgrade", "connection_header"),
        ("", "invalid_header_name"),
        ("a b", "invalid_header_name"),
        ("a:", "invalid_header_name"),
        ("a\r\nwebhook-id", "invalid_header_name"),
        ("ä", "invalid_header_name"),
    ] {
        let refused = CustomHeaders::parse([(name, "x")]).unwrap_err();
        assert_eq!(refused.code(), code, "{name:?}");
    }
}

#[test]
fn custom_headers_have_limits() {
    let code = |headers: &[(&str, &str)]| {
        let parsed = CustomHeaders::parse(headers.iter().copied());
        parsed.map_err(|error| error.code())
    };
    let long = "x".repeat(MAX_VALUE_BYTES + 1);
    for value in [
        "a\r\nb: c",
        "a\nb",
        "a\0b",
        "\u{7f}",
        "ä",
        " a",
        "a ",
        &long,
    ] {
        assert_eq!(
            code(&[("x-a", value)]),
            Err("invalid_header_value"),
            "{value:?}"
        );
    }
    assert_eq!(code(&[("x-a", "1"), ("X-A", "2")]), Err("duplicate_header"));
    let many: Vec<_> = (0..=MAX_CUSTOM_HEADERS)
        .map(|n| (format!("x-{n}"), "v"))
        .collect();
    assert_eq!(
        CustomHeaders::parse(many.clone()).unwrap_err().code(),
        "too_many_headers"
    );
    assert!(CustomHeaders::parse(many[1..].to_vec()).is_ok());
    let fine = [
        ("Authorization", "Bearer CANARY"),
        ("X-Empty", ""),
        ("x_a", "a b"),
    ];
    let fine = CustomHeaders::parse(fine).unwrap();
    assert_eq!(
        fine.names().collect::<Vec<_>>(),
        ["authorization", "x-empty", "x_a"]
    );
    assert!(!format!("{fine:?}").contains("CANARY"));
}
