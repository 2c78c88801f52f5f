//! How the receiver finds sources, and what that costs.

use hookstead_testkit::{FaultProxy, role};

use crate::world::{World, apply, github, post, receiver, source};

#[tokio::test]
async fn inf_09_ten_thousand_unknown_names_cost_one_query() {
    let world = World::github().await;
    let proxy = FaultProxy::start(&world.database.url_as(role::RECEIVER)).await;
    let receiver = receiver(&proxy.url(), &world.secrets, &world.clock, 1);
    assert_eq!(receiver.handle(github("d-1", b"{}")).await.status, 200);
    let before = proxy.round_trips();
    for n in 0..10_000 {
        assert_eq!(
            receiver
                .handle(post(&format!("nobody-{n}"), &[], b"{}"))
                .await
                .status,
            404
        );
    }
    assert_eq!(proxy.round_trips(), before);
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn inf_09_a_large_body_for_nobody_is_refused_without_a_query() {
    let world = World::github().await;
    let answer = world
        .send(post("nobody", &[], &vec![b'a'; 2 * 1024 * 1024]))
        .await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_new_source_works_within_five_seconds() {
    let world = World::github().await;
    assert_eq!(world.send(github("d-1", b"{}")).await.status, 200);
    assert_eq!(world.send(post("late", &[], b"{}")).await.status, 404);
    apply(
        &world.database,
        vec![source("github", "github"), source("late", "github")],
        vec![],
    )
    .await;
    world.clock.advance_s(4);
    assert_eq!(world.send(post("late", &[], b"{}")).await.status, 404);
    world.clock.advance_s(1);
    // It is found now, and has no secret yet.
    assert_eq!(world.send(post("late", &[], b"{}")).await.status, 503);
}

#[tokio::test]
async fn a_source_that_is_switched_off_stops_within_thirty_seconds() {
    let world = World::github().await;
    assert_eq!(world.send(github("d-1", b"{}")).await.status, 200);
    apply(&world.database, vec![], vec![]).await;
    world.clock.advance_s(29);
    assert_eq!(world.send(github("d-2", b"{}")).await.status, 200);
    world.clock.advance_s(1);
    assert_eq!(world.send(github("d-3", b"{}")).await.status, 404);
}

#[tokio::test]
async fn a_source_whose_scheme_cannot_be_read_refuses_everything() {
    let world = World::with(vec![
        source("odd", "no-such-kind"),
        source("github", "github"),
    ])
    .await;
    assert_eq!(world.send(post("odd", &[], b"{}")).await.status, 500);
    assert_eq!(world.send(github("d-1", b"{}")).await.status, 200);
}

#[tokio::test]
async fn a_source_of_the_outbox_has_no_endpoint() {
    let world = World::with(vec![source("app", "outbox"), source("github", "github")]).await;
    let answer = world.send(post("app", &[], b"{}")).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body, br#"{"error":"unknown_source"}"#);
    assert_eq!(world.send(post("hookstead", &[], b"{}")).await.status, 404);
    assert_eq!(world.send(github("d-1", b"{}")).await.status, 200);
}
