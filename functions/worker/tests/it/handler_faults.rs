//! Handlers whose lease, time, connection or worker is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::{Fault, FaultProxy, LogCapture, role};
use tokio::sync::Semaphore;

use crate::notes::{Notes, handlers, notes_in, world};
use crate::world::{World, connections, until, worker_over};

#[tokio::test]
async fn a_handler_whose_lease_was_lost_has_no_effect() {
    let world = world().await;
    let gate = Arc::new(Semaphore::new(0));
    let notes = Notes {
        gate: Some(Arc::clone(&gate)),
        ..Notes::default()
    };
    world.event(b"{}").await;
    let logs = LogCapture::start();
    let late = world.worker_with(handlers(&notes), |_| {});
    let messages = world.messages().await;
    let stalled = tokio::spawn(async move { late.process(messages).await });
    notes.entered.wait_for(1).await;
    world.expire_leases().await;
    world.reap().await;
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    gate.add_permits(1);
    assert_eq!(stalled.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes_in(&world).await, 1);
    assert_eq!(
        world.attempts(world.only().await.delivery_id).await.len(),
        2
    );
    assert!(logs.contains("a handler's writes were rolled back"));
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_handler_costs_a_second_run_and_no_second_effect() {
    let world = world().await;
    world.event(b"{}").await;
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let through = connections(&proxy.url(), 2);
    let notes = Notes {
        cut: Some(Arc::new(proxy)),
        ..Notes::default()
    };
    let worker = worker_over(world.connections(2), through, handlers(&notes), |_| {});
    world.work(&worker).await;
    assert_eq!(notes.runs.load(Ordering::SeqCst), 2);
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (1, 1)
    );
    assert_eq!(world.only().await.attempt_count, 1);
}

#[tokio::test]
async fn a_running_handler_keeps_its_lease_and_is_ended_when_that_is_lost() {
    let world = world().await;
    let gate = Arc::new(Semaphore::new(0));
    let notes = Notes {
        gate: Some(Arc::clone(&gate)),
        ..Notes::default()
    };
    world.event(b"{}").await;
    let logs = LogCapture::start();
    let worker = world.worker_with(handlers(&notes), |settings| {
        settings.heartbeats_per_lease = 1000;
    });
    let messages = world.messages().await;
    let running = tokio::spawn(async move { worker.process(messages).await });
    notes.entered.wait_for(1).await;
    // A lease that is about to end does not.
    world.expire_leases().await;
    let kept = "select count(*) from hookstead.live_deliveries where lease_expires_at > now() + interval '10 s'";
    until(|| async { world.number(kept).await == 1 }).await;
    // One that is gone ends the handler, though it would wait for ever.
    world
        .execute("update hookstead.live_deliveries set lease_id = gen_random_uuid()")
        .await;
    assert_eq!(running.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes_in(&world).await, 0);
    assert_eq!(world.only().await.state, "leased");
    let told = "a handler was ended: its lease was lost, or it is written already";
    assert!(logs.contains(told), "{}", logs.text());
}

/// One connection for handlers, with limits like these.
fn one(world: &World, limits: ConnectionLimits) -> Connections {
    let limits = ConnectionLimits { slots: 1, ..limits };
    Connections::from_url(&world.database.url_as(role::WORKER), limits).unwrap()
}

#[tokio::test]
async fn a_slow_handler_on_a_connection_that_was_idle_runs_once() {
    let world = world().await;
    let suspicious = ConnectionLimits {
        suspect_after: Duration::ZERO,
        suspect_timeout: Duration::from_millis(250),
        ..ConnectionLimits::default()
    };
    let for_handlers = one(&world, suspicious);
    let worker = |notes: &Notes| {
        let for_handlers = for_handlers.clone();
        worker_over(world.connections(2), for_handlers, handlers(notes), |_| {})
    };
    world.event(b"{}").await;
    // Leaves its connection behind.
    world.work(&worker(&Notes::default())).await;
    world.event(b"{}").await;
    let notes = Notes {
        lasts: Duration::from_millis(600),
        ..Notes::default()
    };
    world.work(&worker(&notes)).await;
    assert_eq!(notes.runs.load(Ordering::SeqCst), 1);
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (2, 2)
    );
}

#[tokio::test]
async fn a_handler_that_found_no_connection_free_has_not_failed() {
    let world = world().await;
    let hurried = ConnectionLimits {
        acquire_timeout: Duration::from_millis(50),
        ..ConnectionLimits::default()
    };
    let gate = Arc::new(Semaphore::new(0));
    let notes = Notes {
        gate: Some(Arc::clone(&gate)),
        ..Notes::default()
    };
    let for_handlers = one(&world, hurried);
    let worker = worker_over(world.connections(2), for_handlers, handlers(&notes), |_| {});
    for _ in 0..2 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let running = tokio::spawn(async move { worker.process(messages).await });
    let put_off =
        "select count(*) from hookstead.live_deliveries where state_reason = 'worker_stopped'";
    until(|| async { world.number(put_off).await == 1 }).await;
    gate.add_permits(1);
    assert_eq!(running.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes.runs.load(Ordering::SeqCst), 1);
    assert_eq!(world.ended("succeeded").await, 1);
    let row = world.only_live().await;
    assert_eq!(row.last_error_class, None);
}

#[tokio::test]
async fn a_handler_that_is_broken_off_has_no_effect_and_has_not_failed() {
    let world = world().await;
    let notes = Notes {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Notes::default()
    };
    world.event(b"{}").await;
    let worker = world.worker_with(handlers(&notes), |_| {});
    let messages = world.messages().await;
    let stopping = worker.clone();
    let running = tokio::spawn(async move { worker.process(messages).await });
    notes.entered.wait_for(1).await;
    stopping.stop();
    assert_eq!(running.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes_in(&world).await, 0);
    let row = world.only().await;
    assert_eq!(row.state_reason.as_deref(), Some("worker_stopped"));
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_ended_and_has_no_effect() {
    let world = world().await;
    world
        .execute(
            "update hookstead.subscriptions
             set retry_policy = retry_policy || '{\"timeout_ms\": 100}'",
        )
        .await;
    let notes = Notes {
        gate: Some(Arc::new(Semaphore::new(0))),
        ..Notes::default()
    };
    world.event(b"{}").await;
    world
        .work(&world.worker_with(handlers(&notes), |_| {}))
        .await;
    assert_eq!(notes_in(&world).await, 0);
    assert_eq!(
        world.only().await.last_error_class.as_deref(),
        Some("timeout")
    );
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_has_one_effect() {
    let world = world().await;
    // The commit waits for a lock that the test holds.
    world
        .execute(
            "create function public.wait() returns trigger language plpgsql as
                 $$ begin perform pg_advisory_xact_lock(42); return null; end $$;
             create constraint trigger waits after insert on public.notes
                 deferrable initially deferred for each row execute function public.wait();",
        )
        .await;
    let mut holder = world.database.connect().await;
    sqlx::query("select pg_advisory_lock(42)")
        .execute(&mut holder)
        .await
        .unwrap();
    world.event(b"{}").await;
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let through = connections(&proxy.url(), 2);
    let notes = Notes::default();
    let worker = worker_over(world.connections(2), through, handlers(&notes), |_| {});
    let messages = world.messages().await;
    let running = tokio::spawn(async move { worker.process(messages).await });
    let committing = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    until(|| async { world.number(committing).await == 1 }).await;
    proxy.set(Fault::DropReplies);
    sqlx::query("select pg_advisory_unlock(42)")
        .execute(&mut holder)
        .await
        .unwrap();
    until(|| async { world.ended("succeeded").await == 1 }).await;
    proxy.set(Fault::None);
    proxy.cut();
    assert_eq!(running.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(notes.runs.load(Ordering::SeqCst), 2);
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (1, 1)
    );
    assert_eq!(world.live().await.len(), 0);
}
