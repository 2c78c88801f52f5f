//! Subscriptions that are paused or disabled.

use crate::world::{failure, requests, world};

#[tokio::test]
async fn out_13_disabling_cancels_twenty_scheduled_retries_and_they_stay_visible() {
    let mut world = world().await;
    world.owe(20).await;
    world.attempt_all(&failure()).await;
    let owed = world.pending().await;
    // Some wait, some are in the queue, and all are past their time.
    world
        .sql(&format!(
            "update hookstead.live_deliveries set next_attempt_at = now() - interval '1 s',
                 scheduled_at = case when delivery_id < '{}' then now() end",
            owed[10]
        ))
        .await;
    world
        .sql("update hookstead.subscriptions set disabled_at = now(), disabled_reason = 'operator'")
        .await;
    let relay = world.relay();
    let live = "select count(*)::text from hookstead.live_deliveries";
    let report = world.run_until_value(&relay, live, "0").await;
    assert_eq!((report.cancelled, report.dispatched), (20, 0));
    let sql =
        "select string_agg(distinct state || ' ' || state_reason || ' ' || attempt_count, ',')
               from hookstead.deliveries";
    assert_eq!(world.value(sql).await, "cancelled subscription_disabled 1");
    // Nobody asks for an attempt, and a claim by an old message finds nothing.
    let stale: Vec<_> = owed
        .iter()
        .map(|id| hookstead_domain::AttemptRequest {
            attempt: 2,
            ..crate::world::first(*id)
        })
        .collect();
    assert!(world.claim(&stale).await.is_empty());
}

#[tokio::test]
async fn what_a_paused_subscription_is_owed_waits_for_the_end_of_the_pause() {
    let mut world = world().await;
    world.owe(5).await;
    world
        .sql("update hookstead.subscriptions set paused_until = now() + interval '1 hour'")
        .await;
    world.subscribe("two").await;
    world.publish(1).await;
    let relay = world.relay();
    let moved = "select count(*)::text from hookstead.live_deliveries l
                 join hookstead.subscriptions s using (subscription_id)
                 where s.paused_until is not null and l.attempt_count = 0
                   and l.next_attempt_at > now() + interval '20 s'";
    let report = world.run_until_value(&relay, moved, "6").await;
    assert_eq!(report.postponed, 6);
    let sent = requests(&world.deliveries, 1).await;
    let sql = format!(
        "select s.name from hookstead.live_deliveries l
         join hookstead.subscriptions s using (subscription_id) where l.delivery_id = '{}'",
        sent[0].delivery_id
    );
    assert_eq!(world.value(&sql).await, "two");
    assert_eq!(report.dispatched, 1);
}
