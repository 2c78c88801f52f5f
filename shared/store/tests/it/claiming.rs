//! Claiming.

use hookstead_domain::DeliveryId;
use hookstead_store::delivering::{CLAIM_SQL, Claim, ClaimAnswer, claim, extend_lease};
use hookstead_store::{ConnectionLimits, Connections, planned_by_key};
use hookstead_testkit::{Fault, FaultProxy, role};
use sqlx::Connection as _;
use std::time::Duration;
use uuid::Uuid;

use crate::owed::{claimed, fresh_lease, owed, request, try_claim, words};

#[tokio::test]
async fn a_claim_brings_all_that_an_attempt_needs() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    let event = claimed.event.unwrap();
    assert_eq!(event.raw_body, b"{\"a\": 1.0}");
    assert_eq!(event.content_type.as_deref(), Some("application/json"));
    assert_eq!(
        (event.source_name.as_str(), event.event_type.as_str()),
        ("stripe-main", "invoice.paid")
    );
    assert_eq!(claimed.delivery.attempt_count, 1);
    assert_eq!(claimed.policy, hookstead_domain::RetryPolicy::default());
    assert_eq!(claimed.subscription.name, "one");
    let kept = "select (lease_expires_at - last_attempt_at)::text from hookstead.live_deliveries";
    assert_eq!(
        owed.value(kept).await,
        "00:00:30",
        "15 s for the attempt and 15 s more"
    );
}

#[tokio::test]
async fn stale_and_repeated_messages_do_nothing() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let unknown = DeliveryId::from_uuid(Uuid::from_u128(1));
    let wrong = [
        request(id, 2, 1),
        request(id, 0, 1),
        request(id, 1, 2),
        request(id, 1, 0),
        request(id, u32::MAX, u32::MAX),
        request(unknown, 1, 1),
    ];
    assert_eq!(
        words(&try_claim(&mut owed.worker, &wrong).await),
        ["stale"; 6]
    );
    let twice = [request(id, 1, 1), request(id, 1, 1)];
    let mut answers = words(&try_claim(&mut owed.worker, &twice).await);
    answers.sort_unstable();
    assert_eq!(answers, ["claimed", "stale"]);
    let later = [request(id, 1, 1), request(id, 1, 2)];
    assert_eq!(
        words(&try_claim(&mut owed.worker, &later).await),
        ["stale"; 2]
    );
    assert_eq!(
        owed.value("select attempt_count::text from hookstead.live_deliveries")
            .await,
        "1"
    );
}

#[tokio::test]
async fn an_empty_batch_is_no_fault() {
    let mut owed = owed().await;
    assert!(try_claim(&mut owed.worker, &[]).await.is_empty());
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_the_same_claim_when_it_is_repeated() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let proxy = FaultProxy::start(&owed.fixture.database.url_as(role::WORKER)).await;
    let connections = Connections::from_url(&proxy.url(), ConnectionLimits::default()).unwrap();
    let requests = [request(id, 1, 1)];
    let batch = Claim {
        requests: &requests,
        worker_id: "w",
        max_leases_per_subscription: 40,
        repeated: false,
    };
    // The first connection is made, used, and then loses every answer.
    let none = Claim {
        requests: &[],
        ..batch
    };
    connections.run(&none).await.unwrap();
    proxy.set(Fault::DropReplies);
    let mut waiting = std::pin::pin!(connections.run(&batch));
    let committed = async {
        let mut look = owed.fixture.database.connect().await;
        let state = "select state = 'leased' from hookstead.live_deliveries";
        while !sqlx::query_scalar::<_, bool>(state)
            .fetch_one(&mut look)
            .await
            .unwrap()
        {}
    };
    tokio::select! {
        answers = &mut waiting => panic!("no answer can have come: {answers:?}"),
        () = committed => {}
    }
    proxy.set(Fault::None);
    proxy.cut();
    let answers = waiting.await;
    let got = claimed(answers.unwrap());
    assert_eq!(got.len(), 1, "the second try finds what the first one took");
    assert_eq!(got[0].lease_id, requests[0].lease_id);
    assert_eq!(got[0].delivery.attempt_count, 1, "it counts once");
}

#[tokio::test]
async fn a_claim_that_was_given_up_and_commits_after_all_is_found_by_its_repetition() {
    let mut owed = owed().await;
    owed.fixture
        .subscribe_with("one", "rate_limit_per_s", "5")
        .await;
    let id = owed.receive("evt_1").await[0];
    let requests = [request(id, 1, 1)];
    let mut gate = owed.fixture.database.connect().await;
    let mut transaction = gate.begin().await.unwrap();
    sqlx::query("select from hookstead.subscriptions for update")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let mut running = Vec::new();
    for repeated in [false, true] {
        let mut connection = owed.fixture.database.connect_as(role::WORKER).await;
        crate::support::run(&mut connection, "set lock_timeout = 0").await;
        running.push(tokio::spawn(async move {
            let batch = Claim {
                requests: &requests,
                worker_id: "w",
                max_leases_per_subscription: 40,
                repeated,
            };
            words(&claim(&mut connection, &batch).await.unwrap())
        }));
        waiting_for_locks(&owed, running.len()).await;
    }
    transaction.commit().await.unwrap();
    for one in running {
        assert_eq!(one.await.unwrap(), ["claimed"]);
    }
    let attempts = "select attempt_count::text from hookstead.live_deliveries";
    assert_eq!(owed.value(attempts).await, "1");
}

/// Waits until so many sessions of the test wait for locks.
async fn waiting_for_locks(owed: &crate::owed::Owed, sessions: usize) {
    let mut look = owed.fixture.database.connect().await;
    let waiting = "select count(*) from pg_stat_activity
                   where wait_event_type = 'Lock' and datname = current_database()";
    while sqlx::query_scalar::<_, i64>(waiting)
        .fetch_one(&mut look)
        .await
        .unwrap() as usize
        != sessions
    {}
}

#[tokio::test]
async fn many_workers_that_want_the_same_get_it_once_in_all() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.extend(owed.receive(&format!("evt_{n}")).await);
    }
    let mut workers = Vec::new();
    for worker in 0..8 {
        let mut connection = owed.fixture.database.connect_as(role::WORKER).await;
        // Half of them ask in the opposite order.
        let mut ids = ids.clone();
        if worker % 2 == 0 {
            ids.reverse();
        }
        workers.push(tokio::spawn(async move {
            let requests: Vec<_> = ids.iter().map(|id| request(*id, 1, 1)).collect();
            claimed(try_claim(&mut connection, &requests).await).len()
        }));
    }
    let mut got = 0;
    for worker in workers {
        got += worker.await.unwrap();
    }
    assert_eq!(got, 20);
}

#[tokio::test]
async fn a_plan_that_was_kept_from_an_empty_queue_looks_rows_up_by_their_keys() {
    let owed = owed().await;
    let options: sqlx::postgres::PgConnectOptions =
        owed.fixture.database.url_as(role::WORKER).parse().unwrap();
    let mut worker = sqlx::PgConnection::connect_with(&planned_by_key(options))
        .await
        .unwrap();
    let types =
        "uuid[], integer[], integer[], uuid[], text, float8, integer, integer, uuid, uuid, boolean";
    // What sqlx reads out of the names of columns is not for the server.
    let sql = CLAIM_SQL.replace(['!', '?'], "");
    let prepare = format!("prepare claim ({types}) as {sql}");
    crate::support::run(&mut worker, &prepare).await;
    crate::support::run(&mut worker, "set plan_cache_mode = force_generic_plan").await;
    let explain = "explain execute claim ('{}', '{}', '{}', '{}', 'w', 1, 1, 1, gen_random_uuid(), gen_random_uuid(), false)";
    let plan: Vec<String> = sqlx::query_scalar(explain)
        .fetch_all(&mut worker)
        .await
        .unwrap();
    let plan = plan.join("\n");
    assert!(plan.contains("live_deliveries_pkey"), "{plan}");
    assert!(!plan.contains("Seq Scan on live_deliveries"), "{plan}");
    assert!(!plan.contains("Hash Join"), "{plan}");
}

#[tokio::test]
async fn an_event_that_is_gone_is_told_with_the_claim() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    owed.fixture.run("delete from hookstead.events").await;
    assert!(owed.take(id, 1, 1).await.event.is_none());
}

#[tokio::test]
async fn events_of_different_days_come_in_one_batch() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let today = owed.receive("evt_1").await[0];
    let yesterday = owed
        .receive_at(
            "evt_2",
            time::OffsetDateTime::now_utc() - time::Duration::days(1),
        )
        .await;
    let both = [request(today, 1, 1), request(yesterday, 1, 1)];
    let got = claimed(try_claim(&mut owed.worker, &both).await);
    assert!(got.len() == 2 && got.iter().all(|one| one.event.is_some()));
}

#[tokio::test]
async fn wrk_07_a_lease_is_kept_by_its_owner_alone_and_never_gets_shorter() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    let claimed = owed.take(id, 1, 1).await;
    let long = Duration::from_secs(600);
    let worker = &mut owed.worker;
    assert!(!extend_lease(worker, id, fresh_lease(), long).await.unwrap());
    assert!(
        extend_lease(worker, id, claimed.lease_id, long)
            .await
            .unwrap()
    );
    assert!(
        extend_lease(worker, id, claimed.lease_id, Duration::ZERO)
            .await
            .unwrap()
    );
    let sql = "select (lease_expires_at > now() + interval '500 seconds')::text from hookstead.live_deliveries";
    assert_eq!(owed.value(sql).await, "true");
}

#[tokio::test]
async fn wrk_09_a_message_about_a_row_that_is_not_committed_does_nothing_and_the_next_one_gets_it()
{
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let event = crate::support::event(owed.fixture.source, "evt_1", b"{}");
    let mut receiver = owed.fixture.receiver().await;
    let mut transaction = sqlx::Connection::begin(&mut receiver).await.unwrap();
    hookstead_store::ingest(&mut transaction, &event)
        .await
        .unwrap();
    let subscription = owed
        .value("select subscription_id::text from hookstead.subscriptions")
        .await;
    let id = DeliveryId::derive(event.event_id, subscription.parse().unwrap());
    let early = try_claim(&mut owed.worker, &[request(id, 1, 1)]).await;
    assert!(matches!(early[0], ClaimAnswer::Stale));
    transaction.commit().await.unwrap();
    owed.take(id, 1, 1).await;
}
