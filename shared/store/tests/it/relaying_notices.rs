//! Dead letters to announce, and the backlog that metrics show.

use std::time::Duration;

use hookstead_domain::{DeadLetterNotice, DeadLetterReason, ErrorClass, Outcome, QueueMessage};
use hookstead_store::relaying::{
    acknowledge_notices, backlog, dispatch_due, release_notices, reporting, take_notices,
};
use hookstead_testkit::role;
use sqlx::PgConnection;

use crate::owed::{Owed, owed};
use crate::relaying_support::relaying;

const A_MINUTE: Duration = Duration::from_secs(60);

/// So many dead letters.
async fn dead(count: u32) -> (Owed, PgConnection) {
    let mut owed = owed().await;
    let relay = owed.fixture.database.connect_as(role::RELAY).await;
    owed.fixture.subscribe("orders").await;
    for n in 0..count {
        let id = owed.receive(&format!("evt_{n}")).await[0];
        let claimed = owed.take(id, 1, 1).await;
        let outcome = Outcome::Fail {
            error: ErrorClass::HandlerFailed,
        };
        owed.end(&claimed, &outcome).await;
    }
    (owed, relay)
}

#[tokio::test]
async fn rpl_02_a_dead_letter_is_announced_with_its_event_and_its_reason() {
    let (mut owed, mut relay) = dead(1).await;
    let taken = take_notices(&mut relay, 10, A_MINUTE).await.unwrap();
    let notice: DeadLetterNotice = taken[0];
    assert_eq!((notice.round, notice.attempt_count), (1, 1));
    assert_eq!(notice.state_reason, DeadLetterReason::PermanentFailure);
    let sql = "select event_id || ' ' || subscription_id from hookstead.done_deliveries where state = 'dead_letter'";
    let expected = format!("{} {}", notice.event_id, notice.subscription_id);
    assert_eq!(owed.value(sql).await, expected);
    let message = QueueMessage::DeadLetter(notice).encode();
    assert_eq!(
        QueueMessage::decode(&message),
        Ok(QueueMessage::DeadLetter(notice))
    );
}

#[tokio::test]
async fn a_notice_is_one_relays_at_a_time_and_comes_back_until_it_is_acknowledged() {
    let (mut owed, mut relay) = dead(3).await;
    let mut other = owed.fixture.database.connect_as(role::RELAY).await;
    let taken = take_notices(&mut relay, 2, A_MINUTE).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert_eq!(
        take_notices(&mut other, 10, A_MINUTE).await.unwrap().len(),
        1
    );
    assert_eq!(release_notices(&mut relay, &taken[..1]).await.unwrap(), 1);
    assert_eq!(release_notices(&mut relay, &taken[..1]).await.unwrap(), 0);
    assert_eq!(
        take_notices(&mut other, 10, A_MINUTE).await.unwrap(),
        taken[..1]
    );
    assert_eq!(acknowledge_notices(&mut relay, &taken).await.unwrap(), 2);
    assert_eq!(acknowledge_notices(&mut relay, &taken).await.unwrap(), 0);
    // The third was taken by a relay that never came back.
    owed.fixture
        .run("update hookstead.dead_letter_notices set taken_until = now()")
        .await;
    assert_eq!(
        take_notices(&mut relay, 10, A_MINUTE).await.unwrap().len(),
        1
    );
}

#[tokio::test]
async fn two_relays_that_race_never_take_the_same_notice() {
    let (owed, mut relay) = dead(12).await;
    let mut other = owed.fixture.database.connect_as(role::RELAY).await;
    let (one, two) = tokio::join!(
        take_notices(&mut relay, 8, A_MINUTE),
        take_notices(&mut other, 8, A_MINUTE)
    );
    let mut all = one.unwrap();
    all.extend(two.unwrap());
    all.extend(take_notices(&mut relay, 8, A_MINUTE).await.unwrap());
    let distinct: std::collections::HashSet<_> =
        all.iter().map(|notice| notice.delivery_id).collect();
    assert_eq!((all.len(), distinct.len()), (12, 12));
}

#[tokio::test]
async fn a_notice_that_only_a_later_version_understands_waits_for_it() {
    let (mut owed, mut relay) = dead(2).await;
    owed.fixture
        .run(
            "update hookstead.dead_letter_notices set state_reason = 'of_tomorrow'
             where delivery_id = (select min(delivery_id::text)::uuid from hookstead.dead_letter_notices)",
        )
        .await;
    assert_eq!(
        take_notices(&mut relay, 10, A_MINUTE).await.unwrap().len(),
        1
    );
    let sql = "select count(*)::text from hookstead.dead_letter_notices where taken_until is null";
    assert_eq!(owed.value(sql).await, "1");
}

#[tokio::test]
async fn inf_01_the_backlog_says_what_waits_and_for_how_long() {
    let mut relaying = relaying().await;
    let empty = backlog(&mut relaying.relay).await.unwrap();
    assert_eq!(empty, hookstead_store::relaying::Backlog::default());

    let open = relaying.fixture.subscribe("open").await;
    let off = relaying
        .fixture
        .subscribe_with("off", "disabled_at", "now()")
        .await;
    let until = "now() + interval '1 hour'";
    let paused = relaying
        .fixture
        .subscribe_with("paused", "paused_until", until)
        .await;
    relaying.owe(off, 1, 9000).await;
    relaying.owe(paused, 1, 9000).await;
    assert_eq!(backlog(&mut relaying.relay).await.unwrap().overdue, None);
    relaying.owe(open, 1, -60).await;
    assert_eq!(backlog(&mut relaying.relay).await.unwrap().overdue, None);
    relaying.owe(open, 2, 100).await;
    relaying.publish_many(3).await;
    relaying
        .fixture
        .run("update hookstead.outbox set created_at = now() - interval '100 s'")
        .await;
    let found = backlog(&mut relaying.relay).await.unwrap();
    assert!(found.overdue >= Some(Duration::from_secs(100)), "{found:?}");
    assert!(
        found.oldest_undelivered < Some(Duration::from_secs(60)),
        "{found:?}"
    );
    assert!(
        found.oldest_outbox >= Some(Duration::from_secs(100)),
        "{found:?}"
    );
    assert_eq!((found.waiting, found.scheduled, found.leased), (5, 0, 0));
    assert_eq!((found.outbox, found.outbox_failed), (3, 0));

    // In the queue and not taken by anyone is as late as not in the queue.
    dispatch_due(&mut relaying.relay, 10).await.unwrap();
    let found = backlog(&mut relaying.relay).await.unwrap();
    assert_eq!((found.waiting, found.scheduled, found.pending()), (3, 2, 5));
    assert!(found.overdue >= Some(Duration::from_secs(100)), "{found:?}");
}

#[tokio::test]
async fn the_backlog_counts_attempts_reports_and_notices() {
    let (mut owed, mut relay) = dead(2).await;
    reporting(&mut relay, true).await.unwrap();
    let id = owed.receive("evt_r").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.end(&claimed, &Outcome::Success).await;
    let id = owed.receive("evt_l").await[0];
    owed.take(id, 1, 1).await;
    let found = backlog(&mut relay).await.unwrap();
    assert_eq!((found.leased, found.reports, found.notices), (1, 1, 2));
    assert_eq!(found.overdue, None, "an attempt under way is not late");
}
