//! Secrets that change while requests arrive.

use hookstead_secrets::VersionLabel::{Current, Pending, Previous};
use hookstead_testkit::LogCapture;

use crate::world::{KEY, World, code, github, hmac_hex, with_header};

fn signed_with(key: &str, id: &str) -> hookstead_receiver::InboundRequest {
    let signature = format!("sha256={}", hmac_hex(key, b"{}"));
    with_header(github(id, b"{}"), "X-Hub-Signature-256", &signature)
}

#[tokio::test]
async fn every_live_version_verifies_and_is_recorded() {
    let world = World::github().await;
    world.secrets.set(
        "test:github",
        &[(Current, "now"), (Pending, "next"), (Previous, "last")],
    );
    for (key, label) in [
        ("now", "AWSCURRENT"),
        ("next", "AWSPENDING"),
        ("last", "AWSPREVIOUS"),
    ] {
        assert_eq!(world.send(signed_with(key, key)).await.status, 200);
        let recorded =
            format!("select count(*) from hookstead.events where verified_with = '{label}'");
        assert_eq!(world.number(&recorded).await, 1, "{label}");
    }
    assert_eq!(world.send(signed_with("other", "other")).await.status, 401);
}

#[tokio::test]
async fn a_secret_that_changed_is_read_again_before_a_genuine_request_is_refused() {
    let world = World::github().await;
    assert_eq!(world.send(signed_with(KEY, "a")).await.status, 200);
    world.secrets.set("test:github", &[(Current, "rotated")]);
    world.clock.advance_s(31);
    assert_eq!(world.send(signed_with("rotated", "b")).await.status, 200);
    assert_eq!(world.send(signed_with(KEY, "c")).await.status, 401);
}

#[tokio::test]
async fn a_storm_of_bad_signatures_reads_the_secret_at_most_twice_a_minute() {
    let world = World::github().await;
    assert_eq!(world.send(signed_with(KEY, "a")).await.status, 200);
    for _ in 0..60 {
        world.clock.advance_s(1);
        for _ in 0..5 {
            assert_eq!(world.send(signed_with("wrong", "x")).await.status, 401);
        }
    }
    assert!(
        world.secrets.fetches() <= 3,
        "{} reads",
        world.secrets.fetches()
    );
}

#[tokio::test]
async fn a_revoked_secret_stops_within_a_minute() {
    let world = World::github().await;
    assert_eq!(world.send(signed_with(KEY, "a")).await.status, 200);
    world.secrets.set("test:github", &[(Current, "new")]);
    world.clock.advance_s(60);
    assert_eq!(world.send(signed_with(KEY, "b")).await.status, 401);
}

#[tokio::test]
async fn an_outage_of_the_secret_store_is_ridden_out_and_a_cold_start_in_it_is_503() {
    let world = World::github().await;
    assert_eq!(world.send(signed_with(KEY, "a")).await.status, 200);
    world.secrets.set_down(true);
    world.clock.advance_s(300);
    assert_eq!(world.send(signed_with(KEY, "b")).await.status, 200);
    let cold = world.another_receiver().handle(signed_with(KEY, "c")).await;
    assert_eq!(
        (cold.status, code(&cold).as_str()),
        (503, "secret_unavailable")
    );
    assert!(cold.header("retry-after").is_some());
}

#[tokio::test]
async fn rec_05_a_source_without_a_usable_secret_alerts_by_name() {
    let world = World::github().await;
    world.secrets.set("test:github", &[(Current, "")]);
    let logs = LogCapture::start();
    assert_eq!(
        world
            .another_receiver()
            .handle(signed_with("", "a"))
            .await
            .status,
        503
    );
    let alert = logs
        .lines()
        .into_iter()
        .find(|line| line.contains("\"ERROR\""))
        .unwrap();
    assert!(alert.contains("github"), "{alert}");
}
