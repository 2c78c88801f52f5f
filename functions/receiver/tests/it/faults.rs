//! A database that is away, slow, or back again.

use std::time::Duration;

use futures::future::join_all;
use hookstead_receiver::{Limits, Receiver};
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::{Fault, FaultProxy, LogCapture, role};

use crate::world::{TestReceiver, World, code, event_id, github, is_duplicate, limits};

/// Long enough for a busy machine, short enough for a test that waits for it.
const STORE_TIMEOUT: Duration = Duration::from_millis(1_500);

fn behind(proxy: &FaultProxy, world: &World, store_timeout: Duration) -> TestReceiver {
    let limits_of_store = ConnectionLimits {
        slots: 1,
        acquire_timeout: store_timeout,
        connect_timeout: store_timeout,
        // Every connection counts as one that was frozen: the tests cannot wait for it.
        suspect_after: Duration::ZERO,
        suspect_timeout: store_timeout * 2 / 5,
    };
    let connections = Connections::from_url(&proxy.url(), limits_of_store).unwrap();
    let limits = Limits {
        store_timeout,
        ..limits()
    };
    Receiver::new(
        connections,
        world.secrets.clone(),
        world.clock.clock(),
        limits,
        None,
    )
}

async fn proxied(world: &World) -> FaultProxy {
    FaultProxy::start(&world.database.url_as(role::RECEIVER)).await
}

#[tokio::test]
async fn rec_21_no_success_while_the_database_is_away() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, STORE_TIMEOUT);
    assert_eq!(receiver.handle(github("d-0", b"{}")).await.status, 200);
    proxy.set(Fault::Refuse);
    proxy.cut();
    for _ in 0..3 {
        let answer = receiver.handle(github("d-1", b"{}")).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (503, "store_unavailable")
        );
        assert!(answer.header("retry-after").is_some());
    }
    proxy.set(Fault::None);
    let retried = receiver.handle(github("d-1", b"{}")).await;
    assert!(retried.status == 200 && !is_duplicate(&retried));
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test]
async fn rec_21_a_source_that_was_never_read_is_503_not_404_while_the_database_is_away() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    proxy.set(Fault::Refuse);
    let receiver = behind(&proxy, &world, STORE_TIMEOUT);
    assert_eq!(receiver.handle(github("d-1", b"{}")).await.status, 503);
}

#[tokio::test]
async fn rec_21_a_commit_whose_answer_was_lost_is_found_by_the_retry() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, STORE_TIMEOUT);
    assert_eq!(receiver.handle(github("d-0", b"{}")).await.status, 200);
    proxy.set(Fault::DropReplies);
    assert_eq!(receiver.handle(github("d-1", b"{}")).await.status, 503);
    proxy.set(Fault::None);
    proxy.cut();
    let retried = receiver.handle(github("d-1", b"{}")).await;
    assert_eq!(retried.status, 200);
    assert_eq!(world.events().await.len(), 2);
    assert!(
        world
            .events()
            .await
            .iter()
            .any(|e| e.event_id.to_string() == event_id(&retried))
    );
}

#[tokio::test]
async fn inf_05_a_sleeping_database_is_503_and_nothing_piles_up() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    proxy.set(Fault::BlackHole);
    let receiver = behind(&proxy, &world, STORE_TIMEOUT);
    let waiting = (0..5).map(|n| receiver.handle(github(&format!("d-{n}"), b"{}")));
    for answer in join_all(waiting).await {
        assert_eq!(answer.status, 503);
    }
    proxy.set(Fault::None);
    proxy.cut();
    for n in 0..5 {
        assert_eq!(
            receiver
                .handle(github(&format!("d-{n}"), b"{}"))
                .await
                .status,
            200
        );
    }
    assert_eq!(world.events().await.len(), 5);
}

/// On a clock of its own, which moves only while everything waits: the time that passes
/// is the sum of what was waited for, on any machine.
#[tokio::test]
async fn reading_the_sources_and_storing_share_the_time_for_the_store() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, STORE_TIMEOUT);
    assert_eq!(receiver.handle(github("d-0", b"{}")).await.status, 200);
    proxy.set(Fault::BlackHole);
    let logs = LogCapture::start();
    // The sources have to be read again.
    world.clock.advance_s(31);
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let waiting = (1..6).map(|n| receiver.handle(github(&format!("d-{n}"), b"{}")));
    for answer in join_all(waiting).await {
        assert_eq!(code(&answer), "store_unavailable");
    }
    let waited = begun.elapsed();
    tokio::time::resume();
    // Timers have steps of a millisecond.
    let bound = STORE_TIMEOUT + Duration::from_millis(10);
    assert!(waited <= bound, "{waited:?}");
    assert!(logs.contains("did not answer in time"), "{}", logs.text());
}

#[tokio::test]
async fn inf_06_a_connection_that_was_cut_is_replaced_at_once() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, Duration::from_secs(20));
    for n in 0..5 {
        assert_eq!(
            receiver
                .handle(github(&format!("d-{n}"), b"{}"))
                .await
                .status,
            200
        );
        proxy.cut();
    }
    world
        .execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'hookstead_receiver' and datname = current_database()")
        .await;
    assert_eq!(receiver.handle(github("d-last", b"{}")).await.status, 200);
    assert_eq!(world.events().await.len(), 6);
}

#[tokio::test]
async fn inf_06_a_connection_that_died_silently_is_replaced_within_the_same_request() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, Duration::from_secs(5));
    assert_eq!(receiver.handle(github("d-0", b"{}")).await.status, 200);
    proxy.strand();
    assert_eq!(receiver.handle(github("d-1", b"{}")).await.status, 200);
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test]
async fn one_event_is_one_round_trip() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, Duration::from_secs(20));
    for n in 0..3 {
        receiver.handle(github(&format!("warm-{n}"), b"{}")).await;
    }
    let before = proxy.round_trips();
    for n in 0..10 {
        assert_eq!(
            receiver
                .handle(github(&format!("d-{n}"), b"{}"))
                .await
                .status,
            200
        );
    }
    assert_eq!(proxy.round_trips() - before, 10);
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn rec_22_everything_is_committed_when_the_answer_is_there() {
    let world = World::github().await;
    let answer = world.send(github("d-1", b"{}")).await;
    // Nothing of the receiver runs any more: what is there now is all there will be.
    drop(world.receiver);
    assert_eq!(answer.status, 200);
    let kept = "select count(*) from hookstead.events";
    let mut connection = world.database.connect().await;
    let count: i64 = sqlx::query_scalar(kept)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn an_abandoned_request_does_not_poison_the_connection() {
    let world = World::github().await;
    let proxy = proxied(&world).await;
    let receiver = behind(&proxy, &world, Duration::from_secs(20));
    assert_eq!(receiver.handle(github("d-0", b"{}")).await.status, 200);
    proxy.set(Fault::BlackHole);
    {
        let mut abandoned = Box::pin(receiver.handle(github("d-1", b"{}")));
        assert!(futures::poll!(&mut abandoned).is_pending());
    }
    proxy.set(Fault::None);
    assert_eq!(receiver.handle(github("d-2", b"{}")).await.status, 200);
}

#[tokio::test]
async fn a_day_without_a_partition_is_503_and_leaves_nothing() {
    let world = World::github().await;
    world.clock.advance_s(400 * 86_400);
    let answer = world.send(github("d-1", b"{}")).await;
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (503, "store_unavailable")
    );
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn rec_26_junk_costs_the_genuine_sender_nothing() {
    let world = World::github().await;
    for n in 0..500 {
        let mut junk = github(&format!("junk-{n}"), b"{}");
        junk.body.push(b' ');
        assert_eq!(world.send(junk).await.status, 401);
    }
    assert_eq!(world.rows().await, 0, "junk writes no row");
    for n in 0..50 {
        assert_eq!(
            world.send(github(&format!("d-{n}"), b"{}")).await.status,
            200
        );
    }
}

/// A server may move the work on a request from thread to thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_can_be_handled_by_any_thread() {
    let world = World::github().await;
    let receiver = std::sync::Arc::new(world.another_receiver());
    let handling = (0..8).map(|n| {
        let receiver = std::sync::Arc::clone(&receiver);
        tokio::spawn(async move { receiver.handle(github(&format!("d-{n}"), b"{}")).await })
    });
    for answer in join_all(handling).await {
        assert_eq!(answer.unwrap().status, 200);
    }
}
