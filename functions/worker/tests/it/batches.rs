//! A batch as a whole: what it costs, what waits for what, how it stops.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{LocalQueue, SendMessages as _};
use hookstead_testkit::{Fault, FaultProxy, role};
use hookstead_worker::poller;
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::world::{Consumer, Reply, World, connections, message, until, worker_over};

/// Time enough that nothing is over before the test says so.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_batch_is_one_claim_and_one_finish() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    let through = connections(&proxy.url(), 2);
    let worker = worker_over(through.clone(), through, Default::default(), |_| {});
    // The first ones open the connection and prepare the statements.
    for _ in 0..2 {
        world.event(b"{}").await;
        world.work(&worker).await;
    }
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let before = proxy.round_trips();
    let answer = worker.process(messages).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    assert_eq!(proxy.round_trips() - before, 2);
    assert_eq!(proxy.accepted(), 1);
    assert_eq!(world.ended("succeeded").await, 12);
}

#[tokio::test]
async fn ends_do_not_wait_for_a_straggler() {
    let world = World::new().await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let consumer = Consumer::start(move |request, _| {
        let opened = Arc::clone(&opened);
        Box::pin(async move {
            if request.path == "/slow" {
                drop(opened.acquire().await);
            }
            Reply::status(200)
        })
    })
    .await;
    world.subscribe_http("slow", &consumer).await;
    world.subscribe_http("fast", &consumer).await;
    world.event(b"{}").await;
    let worker = world.worker();
    let messages = world.messages().await;
    let processing = tokio::spawn(async move { worker.process(messages).await });
    // The fast one is written while the slow one is still not answered.
    until(|| async { world.ended("succeeded").await == 1 }).await;
    assert!(!processing.is_finished());
    gate.add_permits(1);
    assert_eq!(processing.await.unwrap().failures, Vec::<String>::new());
    assert_eq!(world.ended("succeeded").await, 2);
}

#[tokio::test]
async fn out_08_a_hundred_deliveries_to_a_dead_endpoint_do_not_hold_up_a_hundred_healthy_ones() {
    let world = World::new().await;
    let dead = Consumer::hanging().await;
    let healthy = Consumer::answering(200).await;
    let patient = json!({"timeout_ms": 300_000, "jitter": 0});
    world
        .subscribe("dead", dead.destination("dead"), patient)
        .await;
    for _ in 0..100 {
        world.event(b"{}").await;
    }
    let hanging = world.messages().await;
    world
        .execute("update hookstead.subscriptions set event_types = '{none}'")
        .await;
    // Four of them, so that none comes near its own limit of attempts at once.
    for name in ["one", "two", "three", "four"] {
        world.subscribe_http(name, &healthy).await;
    }
    for _ in 0..25 {
        world.event(b"{}").await;
    }
    let mut bodies = hanging.clone();
    let others = world.messages().await.into_iter();
    bodies.extend(others.filter(|one| hanging.iter().all(|known| known.body() != one.body())));
    assert_eq!(bodies.len(), 200);
    let bodies: Vec<String> = bodies
        .iter()
        .map(|record| record.body().to_owned())
        .collect();
    let queue = Arc::new(LocalQueue::new(LONG));
    queue.send(&bodies).await;
    let worker = world.worker_with(Default::default(), |settings| {
        settings.visibility_timeout = LONG;
    });
    let (stop, stopped) = watch::channel(false);
    let polling = tokio::spawn(poller::run(worker, queue, 10, stopped));
    until(|| async { world.ended("succeeded").await == 100 }).await;
    // Not one of the others has ended meanwhile.
    let live = world.live().await;
    assert_eq!((healthy.requests().len(), live.len()), (100, 100));
    let leased = live.iter().filter(|row| row.state == "leased").count();
    assert!((1..=60).contains(&leased), "{leased} hang at once");
    stop.send_replace(true);
    polling.await.unwrap();
    let live = world.live().await;
    assert!(
        live.iter().all(|row| row.state == "pending"),
        "broken off and written down"
    );
}

#[tokio::test]
async fn out_09_an_attempt_that_a_stopping_worker_breaks_off_has_not_failed() {
    let world = World::new().await;
    let consumer = Consumer::hanging().await;
    world.subscribe_http("shop", &consumer).await;
    world.event(b"{}").await;
    let worker = world.worker();
    let messages = world.messages().await;
    let stopping = worker.clone();
    let processing = tokio::spawn(async move { worker.process(messages).await });
    consumer.wait_for(1).await;
    stopping.stop();
    assert_eq!(processing.await.unwrap().failures, Vec::<String>::new());
    let row = world.only().await;
    assert_eq!(row.state, "pending");
    assert_eq!(row.state_reason.as_deref(), Some("worker_stopped"));
    assert_eq!(row.last_error_class, None);
    let attempt = world.attempts(row.delivery_id).await.remove(0);
    assert_eq!(attempt.outcome, "defer");
    let (budget, failures) = (
        "select attempt_budget::bigint from hookstead.live_deliveries",
        "select consecutive_failures::bigint from hookstead.subscriptions",
    );
    assert_eq!(world.number(budget).await, 11, "an attempt more");
    assert_eq!(world.number(failures).await, 0);
}

#[tokio::test]
async fn attempts_are_broken_off_when_the_time_of_the_batch_is_over() {
    let world = World::new().await;
    let consumer = Consumer::hanging().await;
    let policy = json!({"timeout_ms": 900});
    world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    world.event(b"{}").await;
    // The claim alone takes so long that the attempt's own time ends after the batch's.
    let proxy = FaultProxy::start(&world.database.url_as(role::WORKER)).await;
    proxy.set(Fault::Delay(Duration::from_millis(150)));
    let through = connections(&proxy.url(), 2);
    let worker = worker_over(through.clone(), through, Default::default(), |settings| {
        settings.finish_reserve = Duration::from_secs(20);
    });
    let deadline = Instant::now() + Duration::from_secs(21);
    let answer = worker.process_by(world.messages().await, deadline).await;
    assert_eq!(answer.failures, Vec::<String>::new());
    let row = world.only().await;
    assert_eq!(row.state_reason.as_deref(), Some("worker_stopped"));
}

#[tokio::test]
async fn an_attempt_that_fits_neither_visibility_nor_batch_is_refused_and_not_shortened() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    let policy = json!({"timeout_ms": 60_000});
    world
        .subscribe("shop", consumer.destination("shop"), policy)
        .await;
    world.event(b"{}").await;
    let worker = world.worker_with(Default::default(), |settings| {
        settings.visibility_timeout = Duration::from_secs(75);
    });
    world.work(&worker).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    world
        .worker()
        .process_by(world.messages().await, deadline)
        .await;
    let attempts = world.attempts(world.only().await.delivery_id).await;
    let details: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt.error_detail.as_deref().unwrap())
        .collect();
    assert_eq!(
        details,
        ["timeout_exceeds_visibility", "timeout_exceeds_batch"]
    );
    assert_eq!(
        attempts[0].error_class.as_deref(),
        Some("invalid_destination")
    );
    assert_eq!(consumer.requests().len(), 0);
}

#[tokio::test]
async fn out_14_nothing_is_held_in_the_database_while_destinations_think() {
    let world = World::new().await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let consumer = Consumer::start(move |_, _| {
        let opened = Arc::clone(&opened);
        Box::pin(async move {
            opened.acquire().await.unwrap().forget();
            Reply::status(200)
        })
    })
    .await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..20 {
        world.event(b"{}").await;
    }
    let worker = world.worker();
    let processing: Vec<_> = world
        .messages()
        .await
        .chunks(10)
        .map(|batch| {
            let (worker, batch) = (worker.clone(), batch.to_vec());
            tokio::spawn(async move { worker.process(batch).await })
        })
        .collect();
    consumer.wait_for(20).await;
    let busy = "select count(*) from pg_stat_activity
         where datname = current_database() and usename = 'hookstead_worker' and state <> 'idle'";
    assert_eq!(world.number(busy).await, 0);
    let locks = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
         where a.datname = current_database() and a.usename = 'hookstead_worker'";
    assert_eq!(world.number(locks).await, 0);
    gate.add_permits(20);
    for one in processing {
        assert_eq!(one.await.unwrap().failures, Vec::<String>::new());
    }
    assert_eq!(world.ended("succeeded").await, 20);
}

#[tokio::test]
async fn an_idle_poller_takes_a_message_as_soon_as_it_comes() {
    let world = World::new().await;
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    let queue = Arc::new(LocalQueue::new(LONG));
    let (stop, stopped) = watch::channel(false);
    let polling = tokio::spawn(poller::run(world.worker(), Arc::clone(&queue), 2, stopped));
    world.event(b"{}").await;
    let body = world.messages().await[0].body().to_owned();
    queue.send(&[body]).await;
    consumer.wait_for(1).await;
    until(|| async { world.ended("succeeded").await == 1 }).await;
    // An idle one stops at once.
    stop.send_replace(true);
    polling.await.unwrap();
}

#[tokio::test]
async fn a_poller_whose_owner_is_gone_stops() {
    let world = World::new().await;
    let (stop, stopped) = watch::channel(false);
    let queue = Arc::new(LocalQueue::new(LONG));
    let polling = tokio::spawn(poller::run(world.worker(), queue, 2, stopped));
    drop(stop);
    polling.await.unwrap();
}

#[tokio::test]
async fn wrk_07_two_workers_never_attempt_one_delivery_at_once() {
    let world = World::new().await;
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let consumer = Consumer::start(move |_, _| {
        let opened = Arc::clone(&opened);
        Box::pin(async move {
            opened.acquire().await.unwrap().forget();
            Reply::status(200)
        })
    })
    .await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..10 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let workers = [world.worker(), world.worker()];
    let processing: Vec<_> = (0..6)
        .map(|number: usize| {
            let (worker, messages) = (workers[number % 2].clone(), messages.clone());
            tokio::spawn(async move { worker.process(messages).await })
        })
        .collect();
    consumer.wait_for(10).await;
    // While all ten are under way, they are asked for again, and as their next attempt.
    for worker in &workers {
        assert_eq!(
            worker.process(messages.clone()).await.failures,
            Vec::<String>::new()
        );
        let next = world
            .live()
            .await
            .into_iter()
            .map(|row| message(row.delivery_id, 1, 2));
        assert_eq!(
            worker.process(next.collect()).await.failures,
            Vec::<String>::new()
        );
    }
    assert_eq!(consumer.requests().len(), 10);
    gate.add_permits(10);
    for one in processing {
        assert_eq!(one.await.unwrap().failures, Vec::<String>::new());
    }
    assert_eq!(consumer.requests().len(), 10);
    assert_eq!(world.ended("succeeded").await, 10);
}

#[tokio::test]
async fn a_destination_that_panics_costs_its_neighbours_nothing() {
    struct Panics;
    impl hookstead_worker::Destination for Panics {
        fn attempt(&self, _: hookstead_worker::Attempt) -> hookstead_worker::AttemptFuture<'_> {
            Box::pin(async { panic!("CANARY") })
        }
    }
    struct Succeeds;
    impl hookstead_worker::Destination for Succeeds {
        fn attempt(&self, _: hookstead_worker::Attempt) -> hookstead_worker::AttemptFuture<'_> {
            Box::pin(async { hookstead_domain::Outcome::Success.into() })
        }
    }
    let world = World::new().await;
    world
        .subscribe("bad", json!({"kind": "panics"}), json!({}))
        .await;
    world
        .subscribe("good", json!({"kind": "succeeds"}), json!({}))
        .await;
    world.event(b"{}").await;
    let destinations = hookstead_worker::Destinations::new()
        .with("panics", Panics)
        .with("succeeds", Succeeds);
    let settings = hookstead_worker::WorkerSettings::named("test");
    let worker = hookstead_worker::Worker::new(world.connections(1), destinations, settings);
    world.work(&worker).await;
    assert_eq!(world.ended("succeeded").await, 1);
    let row = world.live().await.remove(0);
    assert_eq!(row.last_error_class.as_deref(), Some("internal"));
}
