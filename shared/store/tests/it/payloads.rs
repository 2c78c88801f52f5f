//! Bodies that are not what jsonb would like.

use hookstead_store::payload::{PayloadCheck, check, parse};
use hookstead_store::{NewEvent, ingest};
use sqlx::PgConnection;

use crate::support::{Fixture, event, fixture, stored_for};

type Stored = (Vec<u8>, Option<String>, Option<String>);

async fn stored(fixture: &mut Fixture, new: &NewEvent<'_>) -> Stored {
    let mut receiver = fixture.receiver().await;
    let outcome = ingest(&mut receiver, new).await.unwrap();
    assert_eq!(stored_for(&outcome), Some(0));
    sqlx::query_as(
        "select raw_body, payload::text, payload_error from hookstead.events where event_id = $1",
    )
    .bind(new.event_id.as_uuid())
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap()
}

#[tokio::test]
async fn sto_01_an_escaped_nul_is_stored_raw_and_flagged() {
    let mut fixture = fixture().await;
    let body = br#"{"a":"x\u0000y"}"#;
    let new = event(fixture.source, "evt_1", body);
    let (raw, payload, error) = stored(&mut fixture, &new).await;
    assert_eq!(raw, body);
    assert_eq!((payload, error.as_deref()), (None, Some("nul_escape")));
}

#[tokio::test]
async fn sto_02_bytes_that_are_not_utf8_are_stored_raw_and_flagged() {
    let mut fixture = fixture().await;
    let body = b"{\"a\":\"\xff\"}";
    let new = event(fixture.source, "evt_1", body);
    let (raw, payload, error) = stored(&mut fixture, &new).await;
    assert_eq!(raw, body);
    assert_eq!((payload, error.as_deref()), (None, Some("not_utf8")));
}

#[tokio::test]
async fn sto_03_every_depth_has_one_outcome_for_arrays_and_objects() {
    let mut fixture = fixture().await;
    for (depth, expected) in [
        (127, None),
        (128, Some("too_deep")),
        (129, Some("too_deep")),
        (5000, Some("too_deep")),
    ] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for (shape, body) in [("arrays", arrays), ("objects", objects)] {
            let key = format!("{shape}-{depth}");
            let new = event(fixture.source, &key, body.as_bytes());
            let (raw, payload, error) = stored(&mut fixture, &new).await;
            assert_eq!(raw, body.as_bytes(), "{key}");
            assert_eq!(error.as_deref(), expected, "{key}");
            assert_eq!(payload.is_some(), expected.is_none(), "{key}");
            // Whoever reads it with serde_json's defaults can.
            if let Some(payload) = payload {
                serde_json::from_str::<serde_json::Value>(&payload).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn sto_04_numbers_keep_their_digits() {
    let mut fixture = fixture().await;
    let body = br#"{"a":9007199254740993,"b":18446744073709551616,"c":0.1234567890123456789012345,"d":1e400}"#;
    let new = event(fixture.source, "evt_1", body);
    let (raw, payload, error) = stored(&mut fixture, &new).await;
    assert_eq!((raw.as_slice(), error), (body.as_slice(), None));
    let payload = payload.unwrap();
    for digits in [
        "9007199254740993,",
        "18446744073709551616,",
        "0.1234567890123456789012345,",
    ] {
        assert!(payload.contains(digits), "{digits}");
    }
    let as_text: (String, String) =
        sqlx::query_as("select payload ->> 'a', payload ->> 'd' from hookstead.events")
            .fetch_one(&mut fixture.admin)
            .await
            .unwrap();
    assert_eq!(as_text.0, "9007199254740993");
    assert_eq!(as_text.1.len(), 401);
}

#[tokio::test]
async fn what_only_the_database_refuses_is_stored_raw_and_flagged() {
    let mut fixture = fixture().await;
    let body = br#"{"a":"x\u0000y"}"#;
    let mut new = event(fixture.source, "evt_1", body);
    // As if the check had let it pass.
    new.payload = Some(r#"{"a":"x\u0000y"}"#);
    new.payload_error = None;
    let (raw, payload, error) = stored(&mut fixture, &new).await;
    assert_eq!(raw, body);
    assert_eq!(
        (payload, error.as_deref()),
        (None, Some("rejected_by_database"))
    );
}

#[tokio::test]
async fn a_form_becomes_an_object_and_keeps_its_bytes() {
    let mut fixture = fixture().await;
    let body = b"event=sale&item=a&item=b";
    let parsed = parse(Some("application/x-www-form-urlencoded"), body);
    let mut new = event(fixture.source, "evt_1", body);
    new.payload = parsed.text();
    new.payload_error = parsed.error();
    let (raw, payload, error) = stored(&mut fixture, &new).await;
    assert_eq!((raw.as_slice(), error), (body.as_slice(), None));
    assert_eq!(
        payload.as_deref(),
        Some(r#"{"item": ["a", "b"], "event": "sale"}"#)
    );
}

#[tokio::test]
async fn an_empty_body_has_neither_payload_nor_error() {
    let mut fixture = fixture().await;
    let parsed = parse(None, b"");
    let mut new = event(fixture.source, "evt_1", b"");
    new.payload = parsed.text();
    new.payload_error = parsed.error();
    assert_eq!(stored(&mut fixture, &new).await, (Vec::new(), None, None));
}

async fn jsonb_takes(connection: &mut PgConnection, text: &str) -> bool {
    sqlx::query("select $1::text::jsonb")
        .bind(text)
        .execute(connection)
        .await
        .is_ok()
}

/// The check must never let through what the database refuses; where it is
/// stricter, that is a choice and listed.
#[tokio::test]
async fn the_check_and_the_database_agree_at_every_edge() {
    let mut fixture = fixture().await;
    let digits = |n: usize| "9".repeat(n);
    let edges = [
        "0".to_owned(),
        "-0".to_owned(),
        "1E5".to_owned(),
        "1e+5".to_owned(),
        "01".to_owned(),
        "1.".to_owned(),
        ".5".to_owned(),
        "+1".to_owned(),
        "1e".to_owned(),
        "NaN".to_owned(),
        "1e131071".to_owned(),
        "1e131072".to_owned(),
        "12e131070".to_owned(),
        "12e131071".to_owned(),
        "0.1e131072".to_owned(),
        "0.1e131073".to_owned(),
        "1e-16383".to_owned(),
        "1e-16384".to_owned(),
        "0e-16383".to_owned(),
        "0e-16384".to_owned(),
        "0e131073".to_owned(),
        "1.5e-16383".to_owned(),
        digits(131_072),
        digits(131_073),
        format!("0.{}", digits(16_383)),
        format!("0.{}", digits(16_384)),
        r#""\u0000""#.to_owned(),
        r#""\ud800""#.to_owned(),
        r#""\udc00""#.to_owned(),
        r#""\ud83d\ude0a""#.to_owned(),
        r#""\ud83d\u0041""#.to_owned(),
        "\"\t\"".to_owned(),
        "\"\u{7f}\"".to_owned(),
        "\u{feff}1".to_owned(),
        " \t\r\n1 \n".to_owned(),
        "\u{a0}1".to_owned(),
        "\u{b}1".to_owned(),
        "[1,]".to_owned(),
        "{\"a\":1,}".to_owned(),
        "{\"a\":1,\"a\":2}".to_owned(),
        "\"\\x\"".to_owned(),
        "truee".to_owned(),
        String::new(),
    ];
    for text in edges {
        let ours = matches!(check(text.as_bytes()), PayloadCheck::Fits(_));
        let theirs = jsonb_takes(&mut fixture.admin, &text).await;
        let shown: String = text.chars().take(40).collect();
        assert_eq!(ours, theirs, "{shown:?}");
    }
}
