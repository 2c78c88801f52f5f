//! Bodies of every kind: media types, codings, sizes, and what JSON cannot hold.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hookstead_receiver::InboundRequest;
use serde_json::json;

use crate::world::{KEY, World, code, custom_source, github, hmac_hex, post, source, with_header};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn event_of(request: InboundRequest) -> serde_json::Value {
    let world = World::github().await;
    assert_eq!(world.send(request).await.status, 200);
    world.only_event().await
}

#[tokio::test]
async fn rec_12_parameters_and_case_of_the_content_type_do_not_matter() {
    let world = World::github().await;
    for (n, value) in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=\"UTF-8\"",
        "application/vnd.acme.v2+json",
        "application/json; charset=latin1",
    ]
    .iter()
    .enumerate()
    {
        let request = with_header(
            github(&format!("d-{n}"), br#"{"a":1}"#),
            "Content-Type",
            value,
        );
        assert_eq!(world.send(request).await.status, 200, "{value}");
    }
    let parsed = "select count(*) from hookstead.events where payload = '{\"a\": 1}'";
    assert_eq!(world.number(parsed).await, 5);
}

#[tokio::test]
async fn rec_12_latin1_text_is_kept_raw_and_marked() {
    let body = b"{\"name\":\"caf\xe9\"}";
    let request = github("d-1", body);
    let event = event_of(with_header(
        request,
        "Content-Type",
        "application/json; charset=latin1",
    ))
    .await;
    assert_eq!(event["payload_error"], json!("not_utf8"));
}

#[tokio::test]
async fn rec_13_other_media_types_are_stored_raw() {
    let world = World::github().await;
    let multipart = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n";
    for (n, (media_type, body)) in [
        ("text/xml", &b"<event id='1'/>"[..]),
        ("image/jpeg", &[0xff, 0xd8, 0xff][..]),
        ("multipart/form-data; boundary=x", &multipart[..]),
        ("no media type at all", &b"x"[..]),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("d-{n}");
        let request = with_header(github(&id, body), "Content-Type", media_type);
        assert_eq!(world.send(request).await.status, 200, "{media_type}");
    }
    let raw =
        "select count(*) from hookstead.events where payload is null and payload_error is not null";
    assert_eq!(world.number(raw).await, 4);
}

#[tokio::test]
async fn a_form_is_parsed_into_an_object() {
    let request = with_header(
        github("d-1", b"a=1&b=x+y&b=%C3%A9"),
        "Content-Type",
        "application/x-www-form-urlencoded",
    );
    let world = World::github().await;
    assert_eq!(world.send(request).await.status, 200);
    let parsed = "select count(*) from hookstead.events \
                  where payload = '{\"a\": \"1\", \"b\": [\"x y\", \"é\"]}'";
    assert_eq!(world.number(parsed).await, 1);
}

#[tokio::test]
async fn rec_18_a_sender_may_sign_the_plain_or_the_compressed_bytes() {
    let mut signs_plain = custom_source("acme");
    signs_plain.scheme.as_mut().unwrap()["signs"] = json!("decoded");
    let world = World::with(vec![source("github", "github"), signs_plain]).await;
    let plain = br#"{"type":"compressed","n":1}"#;
    let wire = gzip(plain);

    let over_wire = with_header(github("d-1", &wire), "Content-Encoding", "gzip");
    assert_eq!(world.send(over_wire).await.status, 200);

    let now = world.clock.now_s();
    let text = [format!("{now}.").as_bytes(), plain].concat();
    let over_plain = post(
        "acme",
        &[
            ("Content-Encoding", "GZIP"),
            ("X-Acme-Timestamp", &now.to_string()),
            ("X-Acme-Signature", &hmac_hex(KEY, &text)),
            ("X-Acme-Id", "a-1"),
        ],
        &wire,
    );
    assert_eq!(world.send(over_plain).await.status, 200);

    let kept = "select count(*) from hookstead.events \
                where raw_body = decode('HEX', 'hex') and payload = '{\"type\": \"compressed\", \"n\": 1}'";
    let kept = kept.replace("HEX", &hex::encode(&wire));
    assert_eq!(
        world.number(&kept).await,
        2,
        "wire bytes are kept, the parsed copy is of the text"
    );
    let typed = "select count(*) from hookstead.events where event_type = 'compressed'";
    assert_eq!(world.number(typed).await, 1);
}

#[tokio::test]
async fn rec_18_an_unknown_coding_is_415() {
    let world = World::github().await;
    for coding in ["br", "zstd", "deflate", "gzip, br", "nonsense"] {
        let request = with_header(github("d-1", b"{}"), "Content-Encoding", coding);
        let answer = world.send(request).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (415, "unsupported_coding"),
            "{coding}"
        );
    }
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_18_bytes_that_only_claim_to_be_gzip_are_kept_when_they_verify() {
    let request = with_header(github("d-1", b"{not gzip}"), "Content-Encoding", "gzip");
    let event = event_of(request).await;
    assert_eq!(event["payload_error"], json!("not_json"));
}

#[tokio::test]
async fn rec_18_a_bomb_is_413() {
    let world = World::github().await;
    let wire = gzip(&vec![b'a'; 3 * 1024 * 1024]);
    let request = with_header(github("d-1", &wire), "Content-Encoding", "gzip");
    let answer = world.send(request).await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (413, "body_too_large")
    );
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_20_the_limit_is_exact() {
    let world = World::github().await;
    let limit = world.receiver.max_body_bytes();
    for filler in [b'a', 0xff] {
        let id = format!("d-{filler}");
        let at_limit = vec![filler; limit];
        assert_eq!(world.send(github(&id, &at_limit)).await.status, 200);
        let above = world
            .send(github("d-above", &vec![filler; limit + 1]))
            .await;
        assert_eq!(
            (above.status, code(&above).as_str()),
            (413, "body_too_large")
        );
    }
    let full = format!("select count(*) from hookstead.events where length(raw_body) = {limit}");
    assert_eq!(world.number(&full).await, 2);
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test]
async fn sto_01_an_escaped_nul_is_kept_and_marked() {
    let event = event_of(github("d-1", br#"{"a":"x\u0000y"}"#)).await;
    assert_eq!(event["payload_error"], json!("nul_escape"));
    assert_eq!(event["body_bytes"], json!(16));
}

#[tokio::test]
async fn sto_02_bytes_that_are_not_utf8_are_kept_and_marked() {
    let body = b"{\"a\":\"\xff\"}";
    let world = World::github().await;
    assert_eq!(world.send(github("d-1", body)).await.status, 200);
    assert_eq!(world.only_body().await, body);
    assert_eq!(world.only_event().await["payload_error"], json!("not_utf8"));
}

#[tokio::test]
async fn sto_03_nesting_has_one_outcome_per_depth() {
    let world = World::github().await;
    for (depth, fits) in [(127, true), (128, false), (129, false), (5_000, false)] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for body in [arrays, objects] {
            let before = world.number(PARSED).await;
            assert_eq!(
                world.send(github("", body.as_bytes())).await.status,
                200,
                "{depth}"
            );
            assert_eq!(
                world.number(PARSED).await - before,
                i64::from(fits),
                "{depth}"
            );
        }
    }
    let marked = "select count(*) from hookstead.events where payload_error = 'too_deep'";
    assert_eq!(world.number(marked).await, 6);
}

const PARSED: &str = "select count(*) from hookstead.events where payload is not null";

#[tokio::test]
async fn sto_04_numbers_keep_their_digits() {
    let body = br#"{"a":9007199254740993,"b":18446744073709551616,"c":0.1234567890123456789012345,"d":1e400}"#;
    let world = World::github().await;
    assert_eq!(world.send(github("d-1", body)).await.status, 200);
    assert_eq!(world.only_body().await, body);
    let digits = "select count(*) from hookstead.events \
                  where payload ->> 'a' = '9007199254740993' \
                    and payload ->> 'b' = '18446744073709551616' \
                    and payload ->> 'c' = '0.1234567890123456789012345'";
    assert_eq!(world.number(digits).await, 1);
}

#[tokio::test]
async fn sto_04_two_large_numeric_ids_that_round_alike_are_two_events() {
    let world = World::with(vec![source("telegram", "telegram")]).await;
    for id in ["9007199254740992", "9007199254740993", "9007199254740993"] {
        let body = format!("{{\"update_id\":{id},\"message\":{{}}}}");
        let token = [("X-Telegram-Bot-Api-Secret-Token", KEY)];
        assert_eq!(
            world
                .send(post("telegram", &token, body.as_bytes()))
                .await
                .status,
            200
        );
    }
    let mut keys: Vec<String> = world
        .events()
        .await
        .into_iter()
        .map(|event| event.external_event_id)
        .collect();
    keys.sort();
    assert_eq!(keys, ["9007199254740992", "9007199254740993"]);
}
