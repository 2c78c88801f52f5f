//! Dead letters, on the queue of dead letters.

use hookstead_domain::{DeadLetterReason, ErrorClass, Outcome};
use hookstead_relay::Queues;
use hookstead_testkit::LogCapture;

use crate::queues::Picky;
use crate::world::{notices, run, world};

const GONE: Outcome = Outcome::Fail {
    error: ErrorClass::Gone,
};
const LEFT: &str = "select count(*)::text from hookstead.dead_letter_notices";

#[tokio::test]
async fn rpl_02_a_dead_letter_is_announced_with_its_event_and_its_reason() {
    let mut world = world().await;
    let owed = world.owe(1).await;
    world.attempt_all(&GONE).await;
    let log = LogCapture::start();
    let relay = world.relay();
    let queue = world.dead_letters.clone();
    let mut announced = Vec::new();
    let report = run(&relay, async { announced = notices(&queue, 1).await }).await;
    assert_eq!(report.announced, 1);
    assert_eq!(announced[0].delivery_id, owed[0]);
    assert_eq!(announced[0].state_reason, DeadLetterReason::Gone);
    let sql = "select event_id::text from hookstead.events";
    assert_eq!(world.value(sql).await, announced[0].event_id.to_string());
    assert_eq!(world.value(LEFT).await, "0");
    let line = "a delivery was given up";
    let lines = log.lines();
    let lines: Vec<_> = lines.iter().filter(|one| one.contains(line)).collect();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(&owed[0].to_string()) && lines[0].contains("\"gone\""));
}

#[tokio::test]
async fn a_notice_that_is_refused_stays_and_is_sent_later() {
    let mut world = world().await;
    let owed = world.owe(4).await;
    world.attempt_all(&GONE).await;
    let picky = Picky::new(&world.dead_letters, owed[1]);
    let queues = Queues {
        dead_letters: picky.clone(),
        ..world.queues()
    };
    let relay = world.relay_with(queues, None);
    let refused = async { picky.refusals.acquire_many(2).await.unwrap().forget() };
    let report = run(&relay, refused).await;
    assert_eq!((report.announced, report.refused), (3, 2));
    assert_eq!(notices(&world.dead_letters, 3).await.len(), 3);
    let sql =
        "select delivery_id || ' ' || (taken_until is null) from hookstead.dead_letter_notices";
    assert_eq!(world.value(sql).await, format!("{} true", owed[1]));

    picky.take_everything();
    let queue = world.dead_letters.clone();
    let mut late = Vec::new();
    run(&relay, async { late = notices(&queue, 1).await }).await;
    assert_eq!(late[0].delivery_id, owed[1]);
    assert_eq!(world.value(LEFT).await, "0");
}
