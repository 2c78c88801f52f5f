//! Signatures over the exact bytes.

use hookstead_secrets::VersionLabel;
use sha2::{Digest, Sha256};

use crate::world::{
    KEY, World, acme, code, custom_source, github, hmac_hex, post, source, stripe, with_header,
};

const V1: &[u8] = br#"{ "b":1, "a":2.0, "u":"\u00e9", "s":"a\/b" }"#;
const V1_SIGNATURE: &str = "56fad93f81bd0bc9f004fa78cba1a9e25713c1fe32d8a02d7e56a671eb3836b1";
const V1_SHA256: &str = "11fef9827b12d4ebc7d5eb2ec4deb8297c1761d0ddbe8481285393b109eecce4";
const V2: &str = "{\"msg\":\"ok 😊 café\"}";
const V2_SIGNATURE: &str = "ec463e858df80dc01cfeb73160a366ed16ad9a4bcf7a0e490a7a20bd81f2b5ef";
const V3_EMPTY_KEY: &str = "1fc48334ab8e345f34919ef831f204fc021ce1d4af9afb2d40e06a65c8a06265";

fn signed(body: &[u8], signature: &str) -> hookstead_receiver::InboundRequest {
    let value = format!("sha256={signature}");
    post(
        "github",
        &[
            ("Content-Type", "application/json"),
            ("X-GitHub-Event", "push"),
            ("X-GitHub-Delivery", "d-1"),
            ("X-Hub-Signature-256", &value),
        ],
        body,
    )
}

#[tokio::test]
async fn rec_01_the_bytes_that_arrived_are_verified_and_kept() {
    let world = World::github().await;
    let answer = world.send(signed(V1, V1_SIGNATURE)).await;
    assert_eq!(answer.status, 200);
    let kept = world.only_body().await;
    assert_eq!(kept, V1);
    assert_eq!(hex::encode(Sha256::digest(&kept)), V1_SHA256);

    let one_space_less = String::from_utf8(V1.to_vec())
        .unwrap()
        .replacen("{ ", "{", 1);
    let answer = world
        .send(signed(one_space_less.as_bytes(), V1_SIGNATURE))
        .await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (401, "invalid_signature")
    );
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn rec_02_a_signature_of_the_wrong_length_is_401_and_the_next_request_is_fine() {
    let world = World::github().await;
    let right = hmac_hex(KEY, b"{}");
    let long = "a".repeat(10_000);
    for wrong in [
        "",
        "sha256=",
        "sha256=a",
        &format!("sha256={}", &right[..63]),
        &format!("sha256={right}a"),
        &format!("sha256={long}"),
    ] {
        let request = with_header(github("d-1", b"{}"), "X-Hub-Signature-256", wrong);
        let answer = world.send(request).await;
        assert_eq!(answer.status, 401, "{} characters", wrong.len());
        assert_eq!(world.rows().await, 0);
    }
    assert_eq!(world.send(github("d-1", b"{}")).await.status, 200);
}

#[tokio::test]
async fn rec_03_an_unknown_algorithm_label_is_just_a_bad_signature() {
    let world = World::github().await;
    for wrong in [
        "md9=abc",
        "=abc",
        "abc",
        "sha256",
        "sha256=abc=def",
        "sha256:abc",
    ] {
        let request = with_header(github("d-1", b"{}"), "X-Hub-Signature-256", wrong);
        assert_eq!(world.send(request).await.status, 401, "{wrong}");
    }
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_04_a_missing_or_empty_signature_is_401_and_leaves_nothing() {
    let world = World::github().await;
    let absent = post("github", &[("X-GitHub-Delivery", "d-1")], b"{}");
    let empty = post("github", &[("X-Hub-Signature-256", "")], b"{}");
    let twice_empty = post(
        "github",
        &[("X-Hub-Signature-256", ""), ("X-Hub-Signature-256", "")],
        b"{}",
    );
    for request in [absent, empty, twice_empty] {
        let answer = world.send(request).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (401, "invalid_signature")
        );
    }
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_05_an_empty_secret_verifies_nothing() {
    let world = World::github().await;
    for blank in ["", " ", "\n"] {
        world
            .secrets
            .set("test:github", &[(VersionLabel::Current, blank)]);
        let answer = world
            .another_receiver()
            .handle(signed(br#"{"x":1}"#, V3_EMPTY_KEY))
            .await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (503, "secret_unavailable")
        );
    }
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_06_any_listed_signature_may_match() {
    let world = World::with(vec![source("stripe", "stripe")]).await;
    let now = world.clock.now_s();
    let zeros = "0".repeat(64);
    let sign = |body: &str| hmac_hex(KEY, format!("{now}.{body}").as_bytes());
    for (n, order) in ["zeros first", "valid first"].iter().enumerate() {
        let body = format!(r#"{{"id":"evt_{n}","type":"a"}}"#);
        let valid = sign(&body);
        let header = match n {
            0 => format!("t={now},v1={zeros},v1={valid}"),
            _ => format!("t={now},v1={valid},v1={zeros}"),
        };
        let request = post("stripe", &[("Stripe-Signature", &header)], body.as_bytes());
        assert_eq!(world.send(request).await.status, 200, "{order}");
    }
    let body = r#"{"id":"evt_3"}"#;
    let thousand = vec![format!("v1={zeros}"); 1000].join(",");
    let header = format!("t={now},{thousand},v1={}", sign(body));
    let request = post("stripe", &[("Stripe-Signature", &header)], body.as_bytes());
    assert_eq!(world.send(request).await.status, 401);
}

#[tokio::test]
async fn rec_06_unknown_versions_in_a_blank_separated_list_are_skipped() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let world = World::with(vec![source("standard", "standard-webhooks")]).await;
    let secret = format!("whsec_{}", STANDARD.encode(KEY));
    world
        .secrets
        .set("test:standard", &[(VersionLabel::Current, &secret)]);
    let now = world.clock.now_s();
    let body = br#"{"type":"order.paid"}"#;
    let text = [format!("msg_1.{now}.").as_bytes(), body].concat();
    let valid = STANDARD.encode(hex::decode(hmac_hex(KEY, &text)).unwrap());
    let headers = [
        ("webhook-id", "msg_1".to_owned()),
        ("webhook-timestamp", now.to_string()),
        ("webhook-signature", format!("v1,AAAA v1,{valid} v9,zzzz")),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(
        world.send(post("standard", &headers, body)).await.status,
        200
    );
}

#[tokio::test]
async fn rec_07_the_window_is_enforced_on_both_sides() {
    let world = World::with(vec![custom_source("acme")]).await;
    let now = world.clock.now_s();
    for (offset, expected) in [(-299, 200), (5, 200), (299, 200), (300, 200), (-300, 200)] {
        let answer = world
            .send(acme(now + offset, &format!("ok{offset}"), b"{}"))
            .await;
        assert_eq!(answer.status, expected, "{offset}");
    }
    let stored = world.events().await.len();
    for offset in [301, -301, -86_400] {
        let answer = world
            .send(acme(now + offset, &format!("no{offset}"), b"{}"))
            .await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (401, "stale_signature"),
            "{offset}"
        );
    }
    assert_eq!(world.events().await.len(), stored);
}

#[tokio::test]
async fn rec_07_an_unsigned_timestamp_cannot_refresh_an_old_signature() {
    let world = World::with(vec![custom_source("acme")]).await;
    let now = world.clock.now_s();
    let replayed = with_header(
        acme(now - 86_400, "a", b"{}"),
        "X-Acme-Timestamp",
        &now.to_string(),
    );
    let answer = world.send(replayed).await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (401, "invalid_signature")
    );
}

#[tokio::test]
async fn a_source_may_set_its_own_window() {
    let mut narrow = custom_source("acme");
    narrow.tolerance_s = Some(10);
    let world = World::with(vec![narrow]).await;
    let now = world.clock.now_s();
    assert_eq!(world.send(acme(now - 10, "a", b"{}")).await.status, 200);
    assert_eq!(world.send(acme(now - 11, "b", b"{}")).await.status, 401);
}

#[tokio::test]
async fn rec_09_multi_byte_text_verifies_and_reads_the_same() {
    let world = World::github().await;
    assert_eq!(
        world.send(signed(V2.as_bytes(), V2_SIGNATURE)).await.status,
        200
    );
    assert_eq!(world.only_body().await, V2.as_bytes());
    let same = "select count(*) from hookstead.events where payload ->> 'msg' = 'ok 😊 café'";
    assert_eq!(world.number(same).await, 1);
}

#[tokio::test]
async fn rec_17_a_bad_signature_is_exactly_401_for_a_provider_that_probes_with_one() {
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let public = hex::encode(pair.public_key().as_ref());
    let world = World::with(vec![source("discord", "discord")]).await;
    world
        .secrets
        .set("test:discord", &[(VersionLabel::Current, &public)]);
    let now = world.clock.now_s().to_string();
    let ping = br#"{"type":1,"id":"1"}"#;
    let sign = |timestamp: &str, body: &[u8]| {
        hex::encode(pair.sign(&[timestamp.as_bytes(), body].concat()).as_ref())
    };
    let send = |signature: String, timestamp: Option<&str>| {
        let mut request = post("discord", &[("X-Signature-Ed25519", &signature)], ping);
        if let Some(timestamp) = timestamp {
            request.headers.push("X-Signature-Timestamp", timestamp);
        }
        world.send(request)
    };
    for (why, answer) in [
        ("wrong signature", send("ab".repeat(64), Some(&now)).await),
        ("not hex", send("zz".to_owned(), Some(&now)).await),
        ("another timestamp", send(sign("1", ping), Some(&now)).await),
        ("no timestamp", send(sign(&now, ping), None).await),
    ] {
        assert_eq!(answer.status, 401, "{why}");
    }
    let pong = send(sign(&now, ping), Some(&now)).await;
    assert_eq!(pong.status, 200);
    let pong: serde_json::Value = serde_json::from_slice(&pong.body).unwrap();
    assert_eq!(pong, serde_json::json!({ "type": 1 }));
    assert_eq!(world.rows().await, 0, "a ping is no event");
}

#[tokio::test]
async fn rec_24_top_level_values_that_are_not_objects_are_stored_each_on_its_own() {
    let world = World::github().await;
    let bodies: [&[u8]; 7] = [b"null", b"[]", b"\"x\"", b"42", b"true", b"", b" "];
    for body in bodies {
        let answer = world.send(github("", body)).await;
        assert_eq!(answer.status, 200, "{body:?}");
    }
    assert_eq!(world.events().await.len(), bodies.len());
}

#[tokio::test]
async fn an_event_of_a_type_that_is_not_allowed_is_403_and_leaves_nothing() {
    let mut only_invoices = source("stripe", "stripe");
    only_invoices.allowed_event_types = vec!["invoice.*".parse().unwrap()];
    let world = World::with(vec![only_invoices]).await;
    let now = world.clock.now_s();
    let refused = world
        .send(stripe(now, br#"{"id":"evt_1","type":"charge.failed"}"#))
        .await;
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (403, "event_type_not_allowed")
    );
    assert_eq!(world.rows().await, 0);
    let taken = world
        .send(stripe(now, br#"{"id":"evt_2","type":"invoice.paid"}"#))
        .await;
    assert_eq!(taken.status, 200);
}
