//! Deliveries of subscriptions that were switched off.

use hookstead_domain::{DeliveryId, Outcome, ReportId, ReportStatus};
use hookstead_store::relaying::{
    cancel_disabled, dispatch_due, pending_reports, reporting, reports_of,
};
use hookstead_testkit::role;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::owed::{Owed, failure, owed};
use crate::relaying_support::relaying;

const DISABLE: &str = "update hookstead.subscriptions set disabled_at = now()";

async fn relay(owed: &Owed) -> PgConnection {
    owed.fixture.database.connect_as(role::RELAY).await
}

#[tokio::test]
async fn out_13_what_waits_and_what_is_in_the_queue_ends_cancelled_and_stays_visible() {
    let mut owed = owed().await;
    let mut relay = relay(&owed).await;
    owed.fixture.subscribe("off").await;
    let first = owed.receive("evt_1").await[0];
    dispatch_due(&mut relay, 10).await.unwrap();
    owed.receive("evt_2").await;
    owed.fixture.run(DISABLE).await;
    owed.fixture.subscribe("on").await;
    owed.receive("evt_3").await;
    let sql = "select string_agg(round || ' ' || attempt_budget || ' ' || policy::text, ',') from hookstead.live_deliveries";
    let before = owed.value(sql).await;
    assert_eq!(cancel_disabled(&mut relay, 100).await.unwrap(), 2);
    assert_eq!(cancel_disabled(&mut relay, 100).await.unwrap(), 0);
    let sql = "select string_agg(distinct concat_ws(' ', state, state_reason, round, attempt_count,
                   attempt_budget, terminal_at is not null), ', ') from hookstead.deliveries";
    assert_eq!(
        owed.value(sql).await,
        "cancelled subscription_disabled 1 0 10 t, pending 1 0 10 f",
        "{before}"
    );
    let sql = format!("select state from hookstead.done_deliveries where delivery_id = '{first}'");
    assert_eq!(owed.value(&sql).await, "cancelled");
    assert_eq!(owed.fixture.count("live_deliveries").await, 1);
}

#[tokio::test]
async fn an_attempt_under_way_may_finish_and_its_retry_is_cancelled() {
    let mut owed = owed().await;
    let mut relay = relay(&owed).await;
    owed.fixture.subscribe("off").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.fixture.run(DISABLE).await;
    assert_eq!(cancel_disabled(&mut relay, 100).await.unwrap(), 0);
    owed.end(&claimed, &failure()).await;
    assert_eq!(cancel_disabled(&mut relay, 100).await.unwrap(), 1);
    let sql = "select concat_ws(' ', state, attempt_count, last_error_class) from hookstead.done_deliveries";
    assert_eq!(owed.value(sql).await, "cancelled 1 server_error");
}

#[tokio::test]
async fn a_cancelled_delivery_is_reported_once_while_reporting_is_on() {
    let mut owed = owed().await;
    let mut relay = relay(&owed).await;
    reporting(&mut relay, true).await.unwrap();
    owed.fixture
        .run("update hookstead.sources set report_event_type = true")
        .await;
    owed.fixture.subscribe("off").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.end(&claimed, &failure()).await;
    owed.fixture.run("delete from hookstead.reports").await;
    owed.fixture.run(DISABLE).await;
    cancel_disabled(&mut relay, 100).await.unwrap();
    let reports = pending_reports(&mut owed.fixture.admin, 10).await.unwrap();
    assert_eq!(reports.len(), 1);
    let report = &reports[0];
    assert_eq!(report.report_id, ReportId::derive(id, 1, 0));
    assert_eq!(
        (report.status, report.attempt_count),
        (ReportStatus::Cancelled, 1)
    );
    assert_eq!(report.subject.as_ref().unwrap().event_type, "invoice.paid");
    let history = reports_of(&mut owed.fixture.admin, id).await.unwrap();
    assert_eq!(history.last(), Some(report));
}

#[tokio::test]
async fn a_cancelling_that_fails_at_any_step_changes_nothing_and_the_next_one_works() {
    let mut owed = owed().await;
    let mut relay = relay(&owed).await;
    reporting(&mut relay, true).await.unwrap();
    owed.fixture.subscribe("off").await;
    owed.receive("evt_1").await;
    owed.fixture.run(DISABLE).await;
    for table in ["done_deliveries", "reports"] {
        let alter = format!("alter table hookstead.{table}");
        let add = format!("{alter} add constraint injected check (false) not valid");
        owed.fixture.run(&add).await;
        cancel_disabled(&mut relay, 100).await.unwrap_err();
        assert_eq!(owed.fixture.count("live_deliveries").await, 1, "{table}");
        assert_eq!(owed.fixture.count("done_deliveries").await, 0, "{table}");
        owed.fixture
            .run(&format!("{alter} drop constraint injected"))
            .await;
    }
    assert_eq!(cancel_disabled(&mut relay, 100).await.unwrap(), 1);
    assert_eq!(owed.fixture.count("reports").await, 1);
}

#[tokio::test]
async fn two_relays_that_race_cancel_each_delivery_once() {
    let mut relaying = relaying().await;
    let off = relaying
        .fixture
        .subscribe_with("off", "disabled_at", "now()")
        .await;
    relaying.owe(off, 300, 1).await;
    let mut other = relaying.another_relay().await;
    let (one, two) = tokio::join!(
        cancel_disabled(&mut relaying.relay, 200),
        cancel_disabled(&mut other, 200)
    );
    let mut all = one.unwrap() + two.unwrap();
    assert!(all <= 300);
    all += cancel_disabled(&mut relaying.relay, 300).await.unwrap();
    assert_eq!(all, 300);
    assert_eq!(relaying.fixture.count("done_deliveries").await, 300);
    assert_eq!(relaying.fixture.count("live_deliveries").await, 0);
}

#[tokio::test]
async fn a_worker_that_claims_and_a_relay_that_cancels_never_both_get_a_delivery() {
    let mut owed = owed().await;
    let mut relay = relay(&owed).await;
    owed.fixture.subscribe("off").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.fixture.run(DISABLE).await;
    let (cancelled, _) = tokio::join!(
        cancel_disabled(&mut relay, 10),
        owed.end(&claimed, &Outcome::Success)
    );
    assert_eq!(cancelled.unwrap(), 0);
    let sql = "select string_agg(state, ' ') from hookstead.done_deliveries";
    assert_eq!(owed.value(sql).await, "succeeded");
}

#[tokio::test]
async fn sql_and_rust_derive_the_same_report_id() {
    let mut relaying = relaying().await;
    let rows: Vec<(Uuid, i32, i32, Uuid)> = sqlx::query_as(
        "select d, r, a, hookstead.report_id(d, r, a)
         from (select gen_random_uuid() d, 1 + (random() * 1e9)::int r, (random() * 1e9)::int a
               from generate_series(1, 200)) x",
    )
    .fetch_all(&mut relaying.fixture.admin)
    .await
    .unwrap();
    for (delivery, round, attempt, report) in rows {
        let delivery = DeliveryId::from_uuid(delivery);
        let ours = ReportId::derive(delivery, round.cast_unsigned(), attempt.cast_unsigned());
        assert_eq!(ours.as_uuid(), report);
    }
}
