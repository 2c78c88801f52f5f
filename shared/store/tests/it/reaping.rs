//! Leases that run out.

use std::time::Duration;

use hookstead_domain::{DeliveryId, Outcome};
use hookstead_store::delivering::{FinishAnswer, expired_leases, extend_lease};
use hookstead_testkit::role;

use crate::owed::{ended, failure, one_claimed, owed, reap, write};

const FINISHED: FinishAnswer = FinishAnswer::Finished { failing: None };

#[tokio::test]
async fn out_04_a_late_worker_overwrites_nothing() {
    let mut owed = owed().await;
    let late = one_claimed(&mut owed).await;
    owed.let_leases_run_out().await;
    let reaped = reap(&mut owed).await;
    assert_eq!(reaped, [FINISHED]);
    let other = owed.take(late.delivery_id, 1, 2).await;
    assert_eq!(owed.end(&late, &failure()).await, FinishAnswer::LeaseLost);
    assert_eq!(owed.end(&other, &Outcome::Success).await, FINISHED);
    assert_eq!(owed.end(&late, &failure()).await, FinishAnswer::LeaseLost);
    let sql = "select state || ' ' || attempt_count from hookstead.done_deliveries";
    assert_eq!(owed.value(sql).await, "succeeded 2");
    let sql = "select string_agg(outcome || ' ' || coalesce(error_class, '-'), ', ' order by attempt_number)
               from hookstead.attempts";
    assert_eq!(owed.value(sql).await, "retry worker_lost, success -");
}

#[tokio::test]
async fn wrk_08_a_delivery_whose_leases_run_out_ends_as_worker_lost() {
    let mut owed = owed().await;
    let id: DeliveryId = one_claimed(&mut owed).await.delivery_id;
    for attempt in 1..=5 {
        owed.let_leases_run_out().await;
        assert_eq!(reap(&mut owed).await, [FINISHED], "attempt {attempt}");
        if attempt < 5 {
            owed.take(id, 1, attempt + 1).await;
        }
    }
    let sql = "select state || ' ' || state_reason || ' ' || attempt_count from hookstead.done_deliveries";
    assert_eq!(owed.value(sql).await, "dead_letter worker_lost 5");
    assert_eq!(owed.fixture.count("dead_letter_notices").await, 1);
    assert_eq!(
        owed.value("select consecutive_failures::text from hookstead.subscriptions")
            .await,
        "0"
    );
}

#[tokio::test]
async fn one_policy_that_cannot_be_read_keeps_no_other_lease_from_being_taken_away() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    for key in ["evt_1", "evt_2"] {
        let id = owed.receive(key).await[0];
        owed.take(id, 1, 1).await;
    }
    owed.let_leases_run_out().await;
    owed.fixture
        .run(
            "update hookstead.live_deliveries set policy = '{\"schedule_s\": \"odd\"}'
              where delivery_id = (select delivery_id from hookstead.live_deliveries limit 1)",
        )
        .await;
    assert_eq!(reap(&mut owed).await, [FINISHED; 2]);
}

#[tokio::test]
async fn a_lease_that_is_extended_meanwhile_is_not_taken_away() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    owed.let_leases_run_out().await;
    let mut relay = owed.fixture.database.connect_as(role::RELAY).await;
    let expired = expired_leases(&mut relay, 100).await.unwrap();
    assert_eq!(expired.len(), 1);
    let kept = extend_lease(
        &mut owed.worker,
        claimed.delivery_id,
        claimed.lease_id,
        Duration::from_secs(60),
    );
    assert!(kept.await.unwrap());
    let mut end = ended(&claimed, &failure(), expired[0].now);
    end.expired_only = true;
    assert_eq!(write(&mut relay, &[end]).await, [FinishAnswer::LeaseLost]);
    assert_eq!(owed.end(&claimed, &Outcome::Success).await, FINISHED);
}
