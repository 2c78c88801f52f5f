//! Handshakes are answered the way the providers document it.

use hookstead_signing::{
    FollowUp, Handshake, HandshakeAnswer, Headers, Request, Secret, builtin, handshake,
};
use serde_json::json;

use crate::round_trip::{candidate, now};

fn ask(
    kind: &str,
    secret: &str,
    (method, query): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Handshake {
    let headers = Headers::from_pairs(headers.iter().copied());
    let url = format!("https://hooks.example.test/in{query}");
    let request = Request {
        method,
        url: &url,
        headers: &headers,
        body: body.as_bytes(),
        decoded_body: None,
    };
    let secret = Secret::new(secret).unwrap();
    handshake(builtin(kind).unwrap(), &request, &candidate(&secret), now())
}

fn answer(handshake: Handshake) -> HandshakeAnswer {
    match handshake {
        Handshake::Answer(answer) | Handshake::AnswerIfVerified(answer) => answer,
        Handshake::No => panic!("no handshake"),
    }
}

fn body(handshake: Handshake) -> String {
    String::from_utf8(answer(handshake).body).unwrap()
}

#[test]
fn rec_16_an_unsigned_get_challenge_needs_the_right_token() {
    let secret = r#"{"app_secret":"s","verify_token":"right"}"#;
    let get = |query| ask("meta", secret, ("GET", query), &[], "");
    let right = answer(get(
        "?hub.mode=subscribe&hub.verify_token=right&hub.challenge=PROBE123",
    ));
    assert_eq!((right.status, &right.body[..]), (200, &b"PROBE123"[..]));
    assert!(
        right
            .headers
            .contains(&("x-content-type-options".into(), "nosniff".into()))
    );
    let wrong = answer(get(
        "?hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=PROBE123",
    ));
    assert_eq!((wrong.status, wrong.body.len()), (403, 0));
    assert_eq!(
        answer(get("?hub.mode=subscribe&hub.verify_token=right")).status,
        400
    );
    assert!(matches!(get(""), Handshake::No));
    // Without a verify token in the secret nobody can complete the handshake.
    let plain = ask(
        "meta",
        "s",
        ("GET", "?hub.verify_token=s&hub.challenge=x"),
        &[],
        "",
    );
    assert_eq!(answer(plain).status, 403);
    // The challenge is for this provider only.
    assert!(matches!(
        ask(
            "stripe",
            "s",
            ("GET", "?hub.verify_token=s&hub.challenge=x"),
            &[],
            ""
        ),
        Handshake::No
    ));
}

#[test]
fn rec_17_pings_are_answered_only_when_they_verify() {
    let key = "2824a5ad680d324d9f2797aa69644f1fa5ed71a35f966d1d2f7e135099badd59";
    let ping = ask("discord", key, ("POST", ""), &[], r#"{"id":"1","type":1}"#);
    let Handshake::AnswerIfVerified(pong) = ping else {
        panic!("a ping must be verified first");
    };
    assert_eq!((pong.status, &pong.body[..]), (200, &br#"{"type":1}"#[..]));
    let ping = answer(ask("discord", key, ("POST", ""), &[], r#"{"type":0}"#));
    assert_eq!((ping.status, ping.body.len()), (204, 0));
    let event = ask(
        "discord",
        key,
        ("POST", ""),
        &[],
        r#"{"type":1,"event":{"type":"X"}}"#,
    );
    assert!(matches!(event, Handshake::No));
    assert!(matches!(
        ask("discord", key, ("POST", ""), &[], r#"{"type":2}"#),
        Handshake::No
    ));
}

#[test]
fn challenges_in_the_body_are_echoed_when_signed() {
    let slack = ask(
        "slack",
        "s",
        ("POST", ""),
        &[],
        r#"{"type":"url_verification","challenge":"c1"}"#,
    );
    assert!(matches!(slack, Handshake::AnswerIfVerified(_)));
    assert_eq!(body(slack), "c1");
    let headers = [(
        "Twitch-Eventsub-Message-Type",
        "webhook_callback_verification",
    )];
    let twitch = ask(
        "twitch",
        "s",
        ("POST", ""),
        &headers,
        r#"{"challenge":"c2"}"#,
    );
    assert_eq!(body(twitch), "c2");
    let zoom = ask(
        "zoom",
        "s",
        ("POST", ""),
        &[],
        r#"{"event":"endpoint.url_validation","payload":{"plainToken":"p"}}"#,
    );
    let answer: serde_json::Value = serde_json::from_str(&body(zoom)).unwrap();
    assert_eq!(answer["plainToken"], "p");
    assert_eq!(answer["encryptedToken"].as_str().unwrap().len(), 64);
}

#[test]
fn challenges_in_the_query_are_answered() {
    let dropbox = ask("dropbox", "s", ("GET", "?challenge=a%20b"), &[], "");
    assert_eq!(body(dropbox), "a b");
    let graph = ask(
        "microsoft-graph",
        "s",
        ("POST", "?validationToken=a%3Ab"),
        &[],
        "",
    );
    assert_eq!(body(graph), "a:b");
    let twitter = ask("twitter", "s", ("GET", "?crc_token=t"), &[], "");
    assert!(body(twitter).starts_with("{\"response_token\":\"sha256="));
    let long = format!("?challenge={}", "x".repeat(5_000));
    assert_eq!(
        answer(ask("dropbox", "s", ("GET", &long), &[], "")).status,
        400
    );
}

#[test]
fn braintree_gets_its_challenge_signed() {
    let secret =
        r#"{"public_key":"integration_public_key","private_key":"integration_private_key"}"#;
    let query = "?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53";
    assert_eq!(
        body(ask("braintree", secret, ("GET", query), &[], "")),
        "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"
    );
    let junk = answer(ask(
        "braintree",
        secret,
        ("GET", "?bt_challenge=%3Cscript%3E"),
        &[],
        "",
    ));
    assert_eq!(junk.status, 400);
}

#[test]
fn challenges_in_headers_are_echoed() {
    let headers = [("X-Okta-Verification-Challenge", "v")];
    let okta = ask("okta", "s", ("GET", ""), &headers, "");
    assert!(matches!(okta, Handshake::AnswerIfVerified(_)));
    assert_eq!(body(okta), json!({ "verification": "v" }).to_string());
    let front = ask(
        "front-app",
        "s",
        ("POST", ""),
        &[("x-front-challenge", "v")],
        "{}",
    );
    assert_eq!(body(front), json!({ "challenge": "v" }).to_string());
    let headers = [
        ("WebHook-Request-Origin", "events.example.test"),
        ("WebHook-Request-Rate", "120"),
    ];
    let options = answer(ask("cloudevents", "s", ("OPTIONS", ""), &headers, ""));
    assert!(options.headers.contains(&(
        "webhook-allowed-origin".into(),
        "events.example.test".into()
    )));
    assert!(
        options
            .headers
            .contains(&("webhook-allowed-rate".into(), "*".into()))
    );
}

#[test]
fn a_secret_that_is_handed_over_is_kept_out_of_debug_output() {
    let asana = answer(ask(
        "asana",
        "s",
        ("POST", ""),
        &[("X-Hook-Secret", "CANARY7")],
        "{}",
    ));
    assert!(
        asana
            .headers
            .contains(&("X-Hook-Secret".into(), "CANARY7".into()))
    );
    let notion = answer(ask(
        "notion",
        "s",
        ("POST", ""),
        &[],
        r#"{"verification_token":"CANARY8"}"#,
    ));
    let Some(FollowUp::StoreSecret(secret)) = &notion.follow_up else {
        panic!("notion hands over a secret");
    };
    assert_eq!(secret.expose(), "CANARY8");
    assert!(!format!("{notion:?}{asana:?}").contains("CANARY"));
    assert!(matches!(asana.follow_up, Some(FollowUp::StoreSecret(_))));
    // A signed event never hands over a secret.
    let headers = [("X-Notion-Signature", "sha256=00")];
    let event = ask(
        "notion",
        "s",
        ("POST", ""),
        &headers,
        r#"{"verification_token":"x"}"#,
    );
    assert!(matches!(event, Handshake::No));
}

#[test]
fn sns_confirmations_name_a_url_of_amazon_or_none() {
    let confirm = |url: &str| {
        let body = json!({ "Type": "SubscriptionConfirmation", "SubscribeURL": url }).to_string();
        answer(ask(
            "aws-sns",
            "{\"topic_arn\":\"t\"}",
            ("POST", ""),
            &[],
            &body,
        ))
    };
    let good = confirm("https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription");
    assert!(matches!(
        good.follow_up,
        Some(FollowUp::ConfirmSubscription { .. })
    ));
    let evil = confirm("https://evil.example.test/?Action=ConfirmSubscription");
    assert!(evil.follow_up.is_none());
    assert_eq!(evil.status, 400);
}

#[test]
fn empty_deliveries_and_pings_are_acknowledged() {
    for kind in ["xero", "line"] {
        let probe = ask(kind, "s", ("POST", ""), &[], r#"{"events":[]}"#);
        assert!(matches!(probe, Handshake::AnswerIfVerified(_)), "{kind}");
        let event = ask(kind, "s", ("POST", ""), &[], r#"{"events":[{}]}"#);
        assert!(matches!(event, Handshake::No), "{kind}");
    }
    assert_eq!(
        answer(ask("woocommerce", "s", ("POST", ""), &[], "webhook_id=142")).status,
        200
    );
    assert!(matches!(
        ask("woocommerce", "s", ("POST", ""), &[], "webhook_id=142&x=1"),
        Handshake::No
    ));
}
