//! What a claim refuses and postpones.

use std::time::Duration;

use hookstead_store::delivering::{Claim, Failing, claim, pause_subscription};
use hookstead_testkit::role;

use crate::owed::{claimed, owed, request, try_claim, words};

#[tokio::test]
async fn out_13_nothing_of_a_disabled_subscription_is_claimed() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    owed.fixture.run("select hookstead.disable_subscription(subscription_id, 'by_hand') from hookstead.subscriptions").await;
    assert_eq!(
        words(&try_claim(&mut owed.worker, &[request(id, 1, 1)]).await),
        ["stale"]
    );
    assert_eq!(
        owed.value("select state from hookstead.live_deliveries")
            .await,
        "pending"
    );
}

#[tokio::test]
async fn what_its_consumer_fetches_is_not_claimed() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    owed.fixture
        .run("update hookstead.subscriptions set destination = '{\"kind\": \"pull\"}'")
        .await;
    let id = owed.receive("evt_1").await[0];
    let answers = try_claim(&mut owed.worker, &[request(id, 1, 1)]).await;
    assert_eq!(words(&answers), ["stale"]);
}

#[tokio::test]
async fn what_is_paused_is_postponed_to_the_end_of_the_pause_and_counts_nothing() {
    let mut owed = owed().await;
    let subscription = owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let subscription = hookstead_domain::SubscriptionId::from_uuid(subscription);
    owed.fixture
        .run(
            "update hookstead.subscriptions set consecutive_failures = 1, first_failure_at = now()",
        )
        .await;
    let first_failure_at: time::OffsetDateTime =
        sqlx::query_scalar("select first_failure_at from hookstead.subscriptions")
            .fetch_one(&mut owed.fixture.admin)
            .await
            .unwrap();
    let seen = Failing {
        consecutive_failures: 10,
        first_failure_at,
    };
    for pause_s in [60, 1] {
        let pause = Duration::from_secs(pause_s);
        pause_subscription(&mut owed.worker, subscription, pause, &seen)
            .await
            .unwrap();
    }
    assert_eq!(
        words(&try_claim(&mut owed.worker, &[request(id, 1, 1)]).await),
        ["postponed"]
    );
    let sql = "select (attempt_count = 0 and scheduled_at is null
                       and next_attempt_at - s.paused_until between '0' and interval '10 seconds'
                       and s.paused_until > now() + interval '50 seconds')::text
               from hookstead.live_deliveries l join hookstead.subscriptions s using (subscription_id)";
    assert_eq!(owed.value(sql).await, "true");
}

#[tokio::test]
async fn one_subscription_holds_only_so_many_leases_and_the_others_go_on() {
    let mut owed = owed().await;
    owed.fixture.subscribe("a").await;
    owed.fixture.subscribe("b").await;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for n in 0..5 {
        let ids = owed.receive(&format!("evt_{n}")).await;
        a.push(request(ids[0], 1, 1));
        b.push(request(ids[1], 1, 1));
    }
    let limit = async |worker: &mut sqlx::PgConnection, requests: &[_]| {
        let batch = Claim {
            requests,
            worker_id: "w",
            max_leases_per_subscription: 3,
            repeated: false,
        };
        words(&claim(worker, &batch).await.unwrap())
    };
    let answers = limit(&mut owed.worker, &a).await;
    assert_eq!(
        answers,
        ["claimed", "claimed", "claimed", "postponed", "postponed"]
    );
    let answers = limit(&mut owed.worker, &a[3..]).await;
    assert_eq!(answers, ["postponed"; 2], "those under way count");
    assert_eq!(limit(&mut owed.worker, &b[..3]).await, ["claimed"; 3]);
}

#[tokio::test]
async fn a_subscription_that_only_fails_gets_one_lease_at_a_time() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    owed.fixture.run("update hookstead.subscriptions set consecutive_failures = 10, first_failure_at = now()").await;
    let first = owed.receive("evt_1").await[0];
    let second = owed.receive("evt_2").await[0];
    let both = [request(first, 1, 1), request(second, 1, 1)];
    assert_eq!(
        words(&try_claim(&mut owed.worker, &both).await),
        ["claimed", "postponed"]
    );
}

#[tokio::test]
async fn a_rate_limit_lets_a_seconds_worth_through_and_not_more() {
    let mut owed = owed().await;
    owed.fixture
        .subscribe_with("one", "rate_limit_per_s", "3")
        .await;
    let mut requests = Vec::new();
    for n in 0..8 {
        requests.push(request(owed.receive(&format!("evt_{n}")).await[0], 1, 1));
    }
    let answers = words(&try_claim(&mut owed.worker, &requests[..5]).await);
    assert_eq!(
        answers,
        ["claimed", "claimed", "claimed", "postponed", "postponed"]
    );
    // As if nothing had been taken for a while: the next second's worth.
    owed.fixture.run("update hookstead.subscriptions set rate_used_until = rate_used_until - interval '1 hour'").await;
    let answers = words(&try_claim(&mut owed.worker, &requests[4..]).await);
    assert_eq!(answers, ["claimed", "claimed", "claimed", "postponed"]);
}

#[tokio::test]
async fn two_batches_do_not_spend_the_same_allowance() {
    let mut owed = owed().await;
    owed.fixture
        .subscribe_with("one", "rate_limit_per_s", "5")
        .await;
    let mut workers = Vec::new();
    for worker in 0..4 {
        let mut requests = Vec::new();
        for n in 0..5 {
            requests.push(request(
                owed.receive(&format!("{worker}-{n}")).await[0],
                1,
                1,
            ));
        }
        let mut connection = owed.fixture.database.connect_as(role::WORKER).await;
        // They wait for as long as this test keeps them waiting.
        crate::support::run(&mut connection, "set lock_timeout = 0").await;
        workers.push((connection, requests));
    }
    // All four wait for the same row and then go at once.
    let mut gate = owed.fixture.database.connect().await;
    let mut transaction = sqlx::Connection::begin(&mut gate).await.unwrap();
    sqlx::query("select from hookstead.subscriptions for update")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let mut running = Vec::new();
    for (mut connection, requests) in workers {
        running.push(tokio::spawn(async move {
            claimed(try_claim(&mut connection, &requests).await).len()
        }));
    }
    let mut look = owed.fixture.database.connect().await;
    loop {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
            .fetch_one(&mut look).await.unwrap();
        if waiting == 4 {
            break;
        }
        assert!(!running.iter().any(tokio::task::JoinHandle::is_finished));
    }
    transaction.commit().await.unwrap();
    let mut taken = 0;
    for one in running {
        taken += one.await.unwrap();
    }
    // Five at once, and whatever a second's fraction adds while they run.
    assert!((5..=10).contains(&taken), "{taken} of 20");
}
