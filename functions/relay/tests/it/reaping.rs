//! Workers that never come back.

use hookstead_domain::DeadLetterReason;

use crate::world::{World, first, notices, run, world};

async fn let_leases_run_out(world: &mut World) {
    world
        .sql(
            "update hookstead.live_deliveries
             set lease_expires_at = now() - interval '1 s' where state = 'leased'",
        )
        .await;
}

#[tokio::test]
async fn a_lease_that_ran_out_is_taken_away_and_its_delivery_tried_again() {
    let mut world = world().await;
    let owed = world.owe(2).await;
    world.claim(&[first(owed[0]), first(owed[1])]).await;
    let sql = format!(
        "update hookstead.live_deliveries set lease_expires_at = now() - interval '1 s'
         where delivery_id = '{}'",
        owed[0]
    );
    world.sql(&sql).await;
    let relay = world.relay();
    let pending = "select count(*)::text from hookstead.live_deliveries where state = 'pending'";
    let report = world.run_until_value(&relay, pending, "1").await;
    assert_eq!(report.reaped, 1, "the other lease still runs");
    let sql = "select string_agg(outcome || ' ' || error_class || ' ' || attempt_number, ',')
               from hookstead.attempts";
    assert_eq!(world.value(sql).await, "retry worker_lost 1");
    let sql = "select (next_attempt_at between now() and now() + interval '6 s')::text
               from hookstead.live_deliveries where state = 'pending'";
    assert_eq!(world.value(sql).await, "true");
    let sql = "select distinct worker_id from hookstead.attempts";
    assert_eq!(world.value(sql).await, relay.relay_id());
    let sql = "select consecutive_failures::text from hookstead.subscriptions";
    assert_eq!(
        world.value(sql).await,
        "0",
        "it says nothing of the destination"
    );
}

#[tokio::test]
async fn rpl_02_a_delivery_that_keeps_losing_its_worker_ends_on_the_dead_letter_queue() {
    let mut world = world().await;
    let owed = world.owe(1).await;
    let relay = world.relay();
    for attempt in 1..=4 {
        let request = hookstead_domain::AttemptRequest {
            attempt,
            ..first(owed[0])
        };
        assert_eq!(world.claim(&[request]).await.len(), 1, "attempt {attempt}");
        let_leases_run_out(&mut world).await;
        let pending = "select state from hookstead.live_deliveries";
        world.run_until_value(&relay, pending, "pending").await;
    }
    let last = hookstead_domain::AttemptRequest {
        attempt: 5,
        ..first(owed[0])
    };
    assert_eq!(world.claim(&[last]).await.len(), 1);
    let_leases_run_out(&mut world).await;
    let queue = world.dead_letters.clone();
    let mut announced = Vec::new();
    let report = run(&relay, async { announced = notices(&queue, 1).await }).await;
    assert_eq!((report.reaped, report.announced), (1, 1));
    let notice = announced[0];
    assert_eq!(notice.delivery_id, owed[0]);
    assert_eq!((notice.round, notice.attempt_count), (1, 5));
    assert_eq!(notice.state_reason, DeadLetterReason::WorkerLost);
    let sql = "select event_id || ' ' || subscription_id || ' ' || last_error_class
               from hookstead.done_deliveries where state = 'dead_letter'";
    assert_eq!(
        world.value(sql).await,
        format!("{} {} worker_lost", notice.event_id, notice.subscription_id)
    );
}
