//! Several relays on the same rows.

use std::collections::HashMap;
use std::sync::Arc;

use hookstead_domain::{DeliveryId, Outcome, QueueMessage};
use hookstead_relay::Queues;
use tokio::time::Instant;

use crate::queues::Hanging;
use crate::world::{LONG, World, receive, run, world};

const ROWS: u16 = 1_000;

/// What a worker does with so many messages: each makes at most one attempt.
async fn work_off(world: &mut World, sent: &mut HashMap<DeliveryId, u32>, count: usize) {
    let queue = world.deliveries.clone();
    let messages = receive(&queue, count).await;
    let asked = messages.into_iter().map(|message| match message {
        QueueMessage::Attempt(request) => request,
        QueueMessage::DeadLetter(_) => panic!("nothing was given up"),
    });
    let asked: Vec<_> = asked.collect();
    for request in &asked {
        *sent.entry(request.delivery_id).or_default() += 1;
    }
    let claimed = world.claim(&asked).await;
    assert_eq!(claimed.len(), count, "nobody asked twice");
    world.end(&claimed, &Outcome::Success).await;
}

#[tokio::test]
async fn out_06_four_relays_send_a_thousand_rows_once_and_one_dies_amid_its_batch() {
    let mut world = world().await;
    world.owe(ROWS).await;
    let hanging = Arc::new(Hanging::default());
    let dying = world.relay_with(
        Queues {
            deliveries: hanging.clone(),
            ..world.queues()
        },
        None,
    );
    let dying = tokio::spawn(async move {
        dying
            .run(Instant::now() + LONG, std::future::pending())
            .await
    });
    hanging.sends.0.acquire().await.unwrap().forget();
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    world.until_no_relay_is_connected().await;
    let held = hanging.given.lock().unwrap().len();
    let others = usize::from(ROWS) - held;
    assert!(held > 0 && others > 0, "{held} were held");

    let relays = [world.relay(), world.relay(), world.relay()];
    let ends = [(); 3].map(|()| tokio::sync::oneshot::channel::<()>());
    let mut stops = Vec::new();
    let mut runs = Vec::new();
    for (relay, (stop, stopped)) in relays.into_iter().zip(ends) {
        stops.push(stop);
        runs.push(tokio::spawn(async move {
            run(&relay, async { stopped.await.unwrap() }).await
        }));
    }
    let mut sent = HashMap::new();
    work_off(&mut world, &mut sent, others).await;
    // What died with its relay counts as lost after its time, and comes again.
    world
        .sql(
            "update hookstead.live_deliveries set scheduled_at = now() - interval '121 s'
             where state = 'pending'",
        )
        .await;
    for stop in stops {
        stop.send(()).unwrap();
    }
    let mut dispatched = 0;
    for run in runs {
        let report = run.await.unwrap();
        dispatched += report.dispatched + report.redispatched;
    }
    let relay = world.relay();
    let until = async { work_off(&mut world, &mut sent, held).await };
    dispatched += run(&relay, until).await.redispatched;
    assert_eq!(dispatched, u64::from(ROWS));
    assert_eq!(sent.len(), usize::from(ROWS));
    assert!(sent.values().all(|times| *times == 1));
    let sql = "select count(*)::text from hookstead.done_deliveries where state = 'succeeded'";
    assert_eq!(world.value(sql).await, ROWS.to_string());
    let sql = "select count(*)::text from hookstead.live_deliveries";
    assert_eq!(world.value(sql).await, "0", "no row is stuck");
}
