//! Re-arming, and switching subscriptions off and on.

use hookstead_domain::{DeliveryId, ErrorClass, Outcome, StateName, SubscriptionId};
use hookstead_store::delivering::{
    disable_failing_subscription, disable_subscription, enable_subscription, pause_subscription,
    rearm, rearm_cancelled, rearm_dead_letters,
};
use hookstead_testkit::role;
use sqlx::Connection as _;

use crate::owed::{Owed, owed};

const GONE: Outcome = Outcome::Fail {
    error: ErrorClass::HandlerFailed,
};

async fn one_dead(owed: &mut Owed) -> DeliveryId {
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    owed.end(&claimed, &GONE).await;
    id
}

#[tokio::test]
async fn a_notice_moved_back_begins_a_new_round_and_the_old_one_stays() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    let begun = rearm_dead_letters(&mut owed.worker, &[(id, 1)])
        .await
        .unwrap();
    assert_eq!(begun, [(id, 2)]);
    let sql = "select state || ' ' || round || ' ' || attempt_count || ' ' || attempt_budget || ' '
                      || (next_attempt_at <= now()) from hookstead.live_deliveries";
    assert_eq!(owed.value(sql).await, "pending 2 0 10 true");
    let claimed = owed.take(id, 2, 1).await;
    owed.end(&claimed, &Outcome::Success).await;
    let sql = "select string_agg(round || ' ' || state, ', ' order by round) from hookstead.done_deliveries";
    assert_eq!(owed.value(sql).await, "1 dead_letter, 2 succeeded");
    assert_eq!(
        owed.value("select state from hookstead.deliveries").await,
        "succeeded"
    );
}

#[tokio::test]
async fn stale_notices_do_nothing() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    let unknown = DeliveryId::from_uuid(uuid::Uuid::from_u128(1));
    let odd = [(id, 2), (id, 0), (id, u32::MAX), (unknown, 1)];
    assert_eq!(
        rearm_dead_letters(&mut owed.worker, &odd).await.unwrap(),
        []
    );
    let twice = [(id, 1), (id, 1)];
    assert_eq!(
        rearm_dead_letters(&mut owed.worker, &twice).await.unwrap(),
        [(id, 2)]
    );
    assert_eq!(
        rearm_dead_letters(&mut owed.worker, &twice).await.unwrap(),
        [],
        "it is live"
    );
    let claimed = owed.take(id, 2, 1).await;
    owed.end(&claimed, &Outcome::Success).await;
    let stale = [(id, 1), (id, 2)];
    assert_eq!(
        rearm_dead_letters(&mut owed.worker, &stale).await.unwrap(),
        [],
        "it went on, and well"
    );
}

#[tokio::test]
async fn many_that_rearm_the_same_begin_one_round() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    let mut others = Vec::new();
    for _ in 0..6 {
        let mut connection = owed.fixture.database.connect_as(role::WORKER).await;
        others.push(tokio::spawn(async move {
            rearm_dead_letters(&mut connection, &[(id, 1)])
                .await
                .unwrap()
                .len()
        }));
    }
    let mut begun = 0;
    for other in others {
        begun += other.await.unwrap();
    }
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn rpl_03_an_operator_can_begin_anew_as_often_as_wanted() {
    let mut owed = owed().await;
    let mut admin = owed.fixture.database.connect_as(role::ADMIN).await;
    let id = one_dead(&mut owed).await;
    for round in 1..=3 {
        let states = [StateName::Succeeded, StateName::DeadLetter];
        let begun = rearm(&mut admin, &[(id, round)], &states).await.unwrap();
        assert_eq!(begun, [(id, round + 1)]);
        let doubled = rearm(&mut admin, &[(id, round)], &states).await.unwrap();
        assert_eq!(doubled, [], "the same wish twice is one");
        let claimed = owed.take(id, round + 1, 1).await;
        owed.end(&claimed, &Outcome::Success).await;
    }
    assert_eq!(owed.fixture.count("attempts").await, 4);
    assert_eq!(
        rearm(&mut admin, &[(id, 4)], &[StateName::DeadLetter])
            .await
            .unwrap(),
        [],
        "it is none"
    );
}

#[tokio::test]
async fn a_new_round_has_the_policy_of_now() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    owed.fixture
        .run("update hookstead.subscriptions set retry_policy = jsonb_set(retry_policy, '{schedule_s}', '[1, 2]')")
        .await;
    rearm_dead_letters(&mut owed.worker, &[(id, 1)])
        .await
        .unwrap();
    let sql =
        "select attempt_budget || ' ' || (policy ->> 'schedule_s') from hookstead.live_deliveries";
    assert_eq!(owed.value(sql).await, "3 [1, 2]");
}

#[tokio::test]
async fn switching_off_says_so_once_and_keeps_dead_letters_where_they_are() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    let subscription: SubscriptionId = owed
        .value("select subscription_id::text from hookstead.subscriptions")
        .await
        .parse()
        .unwrap();
    assert!(
        disable_subscription(&mut owed.worker, subscription, "gone")
            .await
            .unwrap()
    );
    assert!(
        !disable_subscription(&mut owed.worker, subscription, "failing")
            .await
            .unwrap()
    );
    let sql = "select s.name || ' ' || o.event_type || ' ' || convert_from(o.payload, 'UTF8')::jsonb::text
               from hookstead.outbox o join hookstead.sources s using (source_id)";
    let expected = format!(
        "hookstead subscription.disabled {{\"name\": \"one\", \"reason\": \"gone\", \"subscription_id\": \"{subscription}\"}}"
    );
    assert_eq!(owed.value(sql).await, expected);
    assert_eq!(
        rearm_dead_letters(&mut owed.worker, &[(id, 1)])
            .await
            .unwrap(),
        [],
        "it is off"
    );
}

#[tokio::test]
async fn switching_on_gives_a_clean_record_and_begins_anew_what_was_cancelled_for_it() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    owed.fixture
        .run("update hookstead.subscriptions
                  set disabled_at = now(), disabled_reason = 'failing', consecutive_failures = 9,
                      first_failure_at = now(), paused_until = now() + interval '1 hour';
              update hookstead.done_deliveries set state = 'cancelled', state_reason = 'subscription_disabled'")
        .await;
    let subscription: SubscriptionId = owed
        .value("select subscription_id::text from hookstead.subscriptions")
        .await
        .parse()
        .unwrap();
    let mut admin = owed.fixture.database.connect_as(role::ADMIN).await;
    assert_eq!(
        rearm_cancelled(&mut admin, subscription).await.unwrap(),
        0,
        "it is off"
    );
    assert!(enable_subscription(&mut admin, subscription).await.unwrap());
    assert!(!enable_subscription(&mut admin, subscription).await.unwrap());
    assert_eq!(rearm_cancelled(&mut admin, subscription).await.unwrap(), 1);
    assert_eq!(rearm_cancelled(&mut admin, subscription).await.unwrap(), 0);
    let sql = "select (disabled_at is null and disabled_reason is null and paused_until is null)
                      || ' ' || consecutive_failures from hookstead.subscriptions";
    assert_eq!(owed.value(sql).await, "true 0");
    let claimed = owed.take(id, 2, 1).await;
    owed.end(&claimed, &Outcome::Success).await;
}

#[tokio::test]
async fn a_finish_that_is_under_way_is_waited_for_and_its_round_is_not_begun_again() {
    let mut owed = owed().await;
    let id = one_dead(&mut owed).await;
    rearm_dead_letters(&mut owed.worker, &[(id, 1)])
        .await
        .unwrap();
    let claimed = owed.take(id, 2, 1).await;
    let end = crate::owed::ended(&claimed, &Outcome::Success, claimed.claimed_at);
    let mut finishing = owed.worker.begin().await.unwrap();
    crate::owed::write(&mut finishing, &[end]).await;
    let mut other = owed.fixture.database.connect_as(role::WORKER).await;
    crate::support::run(&mut other, "set lock_timeout = 0").await;
    // The notice of the first round, a second time.
    let rearming =
        tokio::spawn(async move { rearm_dead_letters(&mut other, &[(id, 1)]).await.unwrap() });
    let waiting = "select count(*) from pg_stat_activity
                   where wait_event_type = 'Lock' and datname = current_database()";
    while sqlx::query_scalar::<_, i64>(waiting)
        .fetch_one(&mut owed.fixture.admin)
        .await
        .unwrap()
        != 1
    {}
    finishing.commit().await.unwrap();
    assert_eq!(rearming.await.unwrap(), []);
    assert_eq!(owed.fixture.count("live_deliveries").await, 0);
}

#[tokio::test]
async fn what_has_recovered_meanwhile_is_neither_paused_nor_switched_off() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let subscription: SubscriptionId = owed
        .value("select subscription_id::text from hookstead.subscriptions")
        .await
        .parse()
        .unwrap();
    let seen = hookstead_store::delivering::Failing {
        consecutive_failures: 10,
        first_failure_at: time::OffsetDateTime::now_utc(),
    };
    let worker = &mut owed.worker;
    let pause = std::time::Duration::from_secs(60);
    pause_subscription(worker, subscription, pause, &seen)
        .await
        .unwrap();
    let off = disable_failing_subscription(worker, subscription, "failing", &seen).await;
    assert!(!off.unwrap());
    let sql =
        "select (paused_until is null and disabled_at is null)::text from hookstead.subscriptions";
    assert_eq!(owed.value(sql).await, "true");
}
