//! Phases that fail, and a database that goes away.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hookstead_domain::{ErrorClass, Outcome};
use hookstead_relay::{Phase, Queues, Relay, RelaySettings};
use hookstead_store::relaying::ReadBacklog;
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::{Fault, FaultProxy, LogCapture, role};

use crate::queues::{Hanging, Panicking};
use crate::world::{connections, notices, requests, run, world};

const GONE: Outcome = Outcome::Fail {
    error: ErrorClass::Gone,
};

#[tokio::test]
async fn a_database_that_goes_away_for_a_while_only_delays() {
    let mut world = world().await;
    let proxy = FaultProxy::start(&world.database.url_as(role::RELAY)).await;
    let settings = RelaySettings::named("test");
    let relay = Relay::new(connections(&proxy.url()), world.queues(), None, settings);
    let queue = world.deliveries.clone();
    let log = LogCapture::start();
    let stop = async {
        world.publish(1).await;
        requests(&queue, 1).await;
        let before = proxy.accepted();
        proxy.set(Fault::Refuse);
        proxy.cut();
        world.publish(3).await;
        // Several phases have noticed, some more than once.
        while proxy.accepted() < before + 10 {
            tokio::task::yield_now().await;
        }
        proxy.set(Fault::None);
        requests(&queue, 3).await;
    };
    let report = run(&relay, stop).await;
    assert_eq!(report.expanded, 4);
    assert!(report.failures > 0);
    let lines = log.lines();
    let mut told = 0;
    for phase in Phase::ALL {
        let name = format!("\"phase\":\"{}\"", phase.as_str());
        let of = |text| {
            let both = |line: &&String| line.contains(&name) && line.contains(text);
            lines.iter().filter(both).count()
        };
        let lost = of("\"code\":\"database_unreachable\"");
        assert!(lost <= 1 && of("works again") <= lost, "{name}");
        told += lost;
    }
    assert!(told > 0);
}

#[tokio::test]
async fn a_queue_that_hangs_holds_up_no_other_phase_and_no_connection() {
    let mut world = world().await;
    world.owe(2).await;
    world.attempt_all(&GONE).await;
    let hanging = Arc::new(Hanging::default());
    let queues = Queues {
        dead_letters: hanging.clone(),
        ..world.queues()
    };
    let limits = ConnectionLimits {
        slots: 1,
        ..ConnectionLimits::default()
    };
    let one = Connections::from_url(&world.database.url_as(role::RELAY), limits).unwrap();
    let relay = Relay::new(one.clone(), queues, None, RelaySettings::named("test"));
    let queue = world.deliveries.clone();
    let stop = async {
        hanging.sends.0.acquire().await.unwrap().forget();
        // The send is under way, and the only connection there is can be used.
        one.run(&ReadBacklog).await.unwrap();
        world.publish(5).await;
        requests(&queue, 5).await;
    };
    let report = run(&relay, stop).await;
    assert_eq!((report.dispatched, report.announced), (5, 0));
    let sql = "select count(*)::text from hookstead.dead_letter_notices where taken_until > now()";
    assert_eq!(world.value(sql).await, "2", "they come back by themselves");
}

#[tokio::test]
async fn a_phase_that_panics_goes_on_and_takes_no_other_with_it() {
    let mut world = world().await;
    world.owe(1).await;
    world.attempt_all(&GONE).await;
    let panicking = Arc::new(Panicking {
        behind: world.dead_letters.clone(),
        done: AtomicBool::new(false),
    });
    let queues = Queues {
        dead_letters: panicking,
        ..world.queues()
    };
    let relay = world.relay_with(queues, None);
    let (dead, due) = (world.dead_letters.clone(), world.deliveries.clone());
    let failed =
        "select count(*)::text from hookstead.dead_letter_notices where taken_until > now()";
    world.run_until_value(&relay, failed, "1").await;
    world
        .sql("update hookstead.dead_letter_notices set taken_until = now()")
        .await;
    world.publish(1).await;
    let stop = async {
        notices(&dead, 1).await;
        requests(&due, 1).await;
    };
    run(&relay, stop).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_is_made_good_by_the_next() {
    let mut world = world().await;
    let owed = world.owe(3).await;
    let hanging = Arc::new(Hanging::default());
    let queues = Queues {
        deliveries: hanging.clone(),
        ..world.queues()
    };
    let relay = world.relay_with(queues, None);
    let until = tokio::time::Instant::now() + crate::world::LONG;
    tokio::select! {
        _ = relay.run(until, std::future::pending()) => panic!("it ended"),
        permit = hanging.sends.0.acquire() => permit.unwrap().forget(),
    }
    assert_eq!(hanging.given.lock().unwrap().len(), owed.len());
    drop(relay);
    world.until_no_relay_is_connected().await;
    world
        .sql("update hookstead.live_deliveries set scheduled_at = now() - interval '2 min'")
        .await;
    let relay = world.relay();
    let queue = world.deliveries.clone();
    let stop = async {
        requests(&queue, 3).await;
    };
    assert_eq!(run(&relay, stop).await.redispatched, 3);
}
