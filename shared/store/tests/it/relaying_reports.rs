//! Reports: taken by one relay at a time, given back, acknowledged, and always the
//! same as what the history says.

use std::collections::HashSet;
use std::time::Duration;

use hookstead_domain::{ErrorClass, Outcome, ReasonCode, Report, ReportId, ReportStatus};
use hookstead_store::relaying::{
    acknowledge_reports, pending_reports, release_reports, reporting, reports_of, take_reports,
};
use hookstead_testkit::role;
use sqlx::PgConnection;

use crate::owed::{Owed, ended, failure, owed, write};

const A_MINUTE: Duration = Duration::from_secs(60);

/// Reporting on, and reports of so many deliveries that succeeded.
async fn reported(count: u32) -> (Owed, PgConnection) {
    let mut owed = owed().await;
    let mut relay = owed.fixture.database.connect_as(role::RELAY).await;
    reporting(&mut relay, true).await.unwrap();
    owed.fixture.subscribe("orders").await;
    for n in 0..count {
        let id = owed.receive(&format!("evt_{n}")).await[0];
        let claimed = owed.take(id, 1, 1).await;
        owed.end(&claimed, &Outcome::Success).await;
    }
    (owed, relay)
}

fn ids(reports: &[Report]) -> Vec<ReportId> {
    reports.iter().map(|report| report.report_id).collect()
}

#[tokio::test]
async fn what_one_relay_has_taken_no_other_gets_until_it_is_given_back() {
    let (owed, mut relay) = reported(3).await;
    let mut other = owed.fixture.database.connect_as(role::RELAY).await;
    let taken = take_reports(&mut relay, 2, A_MINUTE).await.unwrap();
    let rest = take_reports(&mut other, 10, A_MINUTE).await.unwrap();
    assert_eq!((taken.len(), rest.len()), (2, 1));
    assert_eq!(take_reports(&mut other, 10, A_MINUTE).await.unwrap(), []);
    assert_eq!(release_reports(&mut relay, &ids(&taken)).await.unwrap(), 2);
    assert_eq!(release_reports(&mut relay, &ids(&taken)).await.unwrap(), 0);
    let again = take_reports(&mut other, 10, A_MINUTE).await.unwrap();
    assert_eq!(again, taken, "byte for byte");
}

#[tokio::test]
async fn an_acknowledged_report_is_gone_and_acknowledging_again_changes_nothing() {
    let (mut owed, mut relay) = reported(2).await;
    let taken = take_reports(&mut relay, 10, A_MINUTE).await.unwrap();
    assert_eq!(
        acknowledge_reports(&mut relay, &ids(&taken[..1]))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        acknowledge_reports(&mut relay, &ids(&taken[..1]))
            .await
            .unwrap(),
        0
    );
    let left = pending_reports(&mut owed.fixture.admin, 10).await.unwrap();
    assert_eq!(left, taken[1..]);
}

#[tokio::test]
async fn what_a_relay_took_and_never_came_back_for_is_taken_again() {
    let (mut owed, mut relay) = reported(1).await;
    let taken = take_reports(&mut relay, 10, A_MINUTE).await.unwrap();
    drop(relay);
    let mut other = owed.fixture.database.connect_as(role::RELAY).await;
    assert_eq!(take_reports(&mut other, 10, A_MINUTE).await.unwrap(), []);
    owed.fixture
        .run("update hookstead.reports set taken_until = taken_until - interval '1 minute'")
        .await;
    assert_eq!(take_reports(&mut other, 10, A_MINUTE).await.unwrap(), taken);
}

#[tokio::test]
async fn two_relays_that_race_never_take_the_same_report() {
    let (owed, mut relay) = reported(20).await;
    let mut other = owed.fixture.database.connect_as(role::RELAY).await;
    let (one, two) = tokio::join!(
        take_reports(&mut relay, 15, A_MINUTE),
        take_reports(&mut other, 15, A_MINUTE)
    );
    let mut all = one.unwrap();
    all.extend(two.unwrap());
    all.extend(take_reports(&mut relay, 15, A_MINUTE).await.unwrap());
    let distinct: HashSet<ReportId> = ids(&all).into_iter().collect();
    assert_eq!((all.len(), distinct.len()), (20, 20));
}

#[tokio::test]
async fn switching_off_drops_what_waits_and_writes_nothing_more() {
    let (mut owed, mut relay) = reported(1).await;
    let since = "select reporting_since::text from hookstead.installation";
    let first = owed.value(since).await;
    reporting(&mut relay, true).await.unwrap();
    assert_eq!(owed.value(since).await, first, "it was on already");
    assert_eq!(owed.fixture.count("reports").await, 1);
    for _ in 0..2 {
        reporting(&mut relay, false).await.unwrap();
        assert_eq!(owed.fixture.count("reports").await, 0);
        assert_eq!(owed.value(since).await, "none");
    }
    let id = owed.receive("evt_later").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.end(&claimed, &Outcome::Success).await;
    assert_eq!(owed.fixture.count("reports").await, 0);
}

#[tokio::test]
async fn a_report_of_a_later_version_stays_and_stops_nobody() {
    let (mut owed, mut relay) = reported(2).await;
    owed.fixture
        .run(
            "update hookstead.reports set error_class = 'of_tomorrow'
             where report_id = (select min(report_id::text)::uuid from hookstead.reports)",
        )
        .await;
    assert_eq!(
        take_reports(&mut relay, 10, A_MINUTE).await.unwrap().len(),
        1
    );
    assert_eq!(owed.fixture.count("reports").await, 2);
}

/// A delivery that fails, is deferred, and ends so; gives the states it went through.
async fn live_through(
    owed: &mut Owed,
    key: &str,
    last: &Outcome,
    subject: bool,
) -> hookstead_domain::DeliveryId {
    let defer = Outcome::Defer {
        reason: ReasonCode::CONSUMER_DEFERRED,
        wait: None,
    };
    let id = owed.receive(key).await[0];
    let outcomes = [&failure(), &defer, last];
    for (attempt, outcome) in (1..).zip(outcomes) {
        let claimed = owed.take(id, 1, attempt).await;
        // Fractions of a second, as real ones have.
        let now = claimed.claimed_at + Duration::from_micros(1_234_567);
        let mut end = ended(&claimed, outcome, now);
        if subject {
            end.subject = Some(("stripe".to_owned(), "invoice.paid".to_owned()));
        }
        write(&mut owed.worker, &[end]).await;
    }
    id
}

#[tokio::test]
async fn the_history_of_a_delivery_gives_the_very_reports_that_were_written() {
    let (mut owed, _relay) = reported(0).await;
    let skip = Outcome::Skip {
        reason: ReasonCode::CONSUMER_SKIPPED,
    };
    let fail = Outcome::Fail {
        error: ErrorClass::HandlerFailed,
    };
    for subject in [false, true] {
        let sql = format!("update hookstead.sources set report_event_type = {subject}");
        owed.fixture.run(&sql).await;
        for (name, last, status) in [
            ("ok", Outcome::Success, ReportStatus::Succeeded),
            ("skip", skip.clone(), ReportStatus::Skipped),
            ("fail", fail.clone(), ReportStatus::DeadLetter),
        ] {
            let key = format!("{name} {subject}");
            let id = live_through(&mut owed, &key, &last, subject).await;
            let mut admin = owed.fixture.database.connect_as(role::ADMIN).await;
            let history = reports_of(&mut admin, id).await.unwrap();
            let stati: Vec<ReportStatus> = history.iter().map(|report| report.status).collect();
            assert_eq!(
                stati,
                [ReportStatus::Retrying, ReportStatus::Retrying, status]
            );
            let mut written = pending_reports(&mut admin, 100).await.unwrap();
            written.retain(|report| report.job_id == id);
            written.sort_by_key(|report| report.attempt_count);
            assert_eq!(bytes(&history), bytes(&written), "{key}");
        }
    }
}

fn bytes(reports: &[Report]) -> String {
    let lines = reports
        .iter()
        .map(|report| serde_json::to_string(report).unwrap() + "\n");
    lines.collect()
}
