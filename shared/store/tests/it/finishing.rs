//! Ending attempts.

use hookstead_domain::{ErrorClass, Outcome, ReasonCode};
use hookstead_store::StoreError;
use hookstead_store::delivering::{FinishAnswer, earlier_failures};
use hookstead_testkit::role;

use crate::owed::{ended, failure, one_claimed, owed, request, try_claim, words, write};

const FINISHED: FinishAnswer = FinishAnswer::Finished { failing: None };

#[tokio::test]
async fn a_success_moves_the_delivery_to_the_archive_with_its_attempt() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    assert_eq!(owed.end(&claimed, &Outcome::Success).await, FINISHED);
    assert_eq!(owed.fixture.count("live_deliveries").await, 0);
    let sql = "select d.state || ' ' || d.attempt_count || ' ' || a.outcome || ' ' || a.status_code
                      || ' ' || a.latency_ms || ' ' || encode(a.response_sha256, 'hex')
               from hookstead.done_deliveries d join hookstead.attempts a using (delivery_id, round)";
    let digest = "07".repeat(32);
    assert_eq!(
        owed.value(sql).await,
        format!("succeeded 1 success 200 12 {digest}")
    );
    assert_eq!(owed.fixture.count("reports").await, 0, "reporting is off");
    assert_eq!(owed.fixture.count("dead_letter_notices").await, 0);
}

#[tokio::test]
async fn a_failure_waits_for_its_next_attempt_and_the_second_claim_is_that_one() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    owed.end(&claimed, &failure()).await;
    let sql = "select state || ' ' || attempt_count || ' ' || last_error_class || ' '
                      || (next_attempt_at - last_attempt_at between '5 seconds' and '7 seconds')
               from hookstead.live_deliveries where lease_id is null and scheduled_at is null";
    assert_eq!(owed.value(sql).await, "pending 1 server_error true");
    assert_eq!(owed.fixture.count("attempts").await, 1);
    let id = claimed.delivery_id;
    assert_eq!(
        words(&try_claim(&mut owed.worker, &[request(id, 1, 1)]).await),
        ["stale"]
    );
    let again = owed.take(id, 1, 2).await;
    owed.end(&again, &Outcome::Success).await;
    assert_eq!(owed.fixture.count("attempts").await, 2);
}

#[tokio::test]
async fn a_finish_that_is_repeated_writes_nothing_more() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    for expected in [FINISHED, FinishAnswer::LeaseLost] {
        assert_eq!(owed.end(&claimed, &Outcome::Success).await, expected);
        assert_eq!(owed.fixture.count("attempts").await, 1);
        assert_eq!(owed.fixture.count("done_deliveries").await, 1);
    }
}

#[tokio::test]
async fn what_claims_and_finishes_is_never_compiled() {
    let mut owed = owed().await;
    // Above this cost a statement is compiled, which takes longer than running it.
    let function =
        "select array_to_string(proconfig, ' ') from pg_proc where proname = 'finish_attempts'";
    let settings = owed.value(function).await;
    assert!(
        settings.contains("jit=off") && settings.contains("enable_seqscan=off"),
        "{settings}"
    );
    let options: sqlx::postgres::PgConnectOptions =
        owed.fixture.database.url_as(role::WORKER).parse().unwrap();
    let options = hookstead_store::planned_by_key(options);
    let mut worker = <sqlx::PgConnection as sqlx::Connection>::connect_with(&options)
        .await
        .unwrap();
    let jit: String = sqlx::query_scalar("show jit")
        .fetch_one(&mut worker)
        .await
        .unwrap();
    assert_eq!(jit, "off");
}

#[tokio::test]
async fn a_lost_lease_in_a_batch_does_not_harm_the_others() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let mut ends = Vec::new();
    for n in 0..3 {
        let id = owed.receive(&format!("evt_{n}")).await[0];
        let claimed = owed.take(id, 1, 1).await;
        ends.push(ended(&claimed, &Outcome::Success, claimed.claimed_at));
    }
    ends[1].lease_id = crate::owed::fresh_lease();
    let answers = write(&mut owed.worker, &ends).await;
    assert_eq!(answers, [FINISHED, FinishAnswer::LeaseLost, FINISHED]);
    assert_eq!(owed.fixture.count("done_deliveries").await, 2);
    assert_eq!(owed.fixture.count("live_deliveries").await, 1);
}

#[tokio::test]
async fn a_finish_that_fails_at_any_step_leaves_no_trace_and_succeeds_when_it_is_repeated() {
    for (table, outcome) in [
        ("attempts", Outcome::Success),
        ("done_deliveries", Outcome::Success),
        ("reports", Outcome::Success),
        (
            "dead_letter_notices",
            Outcome::Fail {
                error: ErrorClass::Gone,
            },
        ),
        ("subscriptions", failure()),
    ] {
        let mut owed = owed().await;
        let claimed = one_claimed(&mut owed).await;
        owed.fixture
            .run("update hookstead.installation set reporting_since = now()")
            .await;
        owed.fixture
            .run(&format!(
                "create function public.refuse() returns trigger language plpgsql
                 as $$ begin raise exception 'refused'; end $$;
             create trigger refuse before insert or update on hookstead.{table}
                 for each row execute function public.refuse()"
            ))
            .await;
        let end = ended(&claimed, &outcome, claimed.claimed_at);
        let batch = hookstead_store::delivering::Finish {
            attempts: std::slice::from_ref(&end),
            worker_id: "w",
            region: None,
        };
        let refused = hookstead_store::delivering::finish(&mut owed.worker, &batch).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{table}");
        for untouched in [
            "attempts",
            "done_deliveries",
            "reports",
            "dead_letter_notices",
        ] {
            assert_eq!(
                owed.fixture.count(untouched).await,
                0,
                "{table}: {untouched}"
            );
        }
        assert_eq!(
            owed.value("select state from hookstead.live_deliveries")
                .await,
            "leased"
        );
        owed.fixture
            .run(&format!("drop trigger refuse on hookstead.{table}"))
            .await;
        assert_ne!(
            write(&mut owed.worker, &[end]).await,
            [FinishAnswer::LeaseLost],
            "{table}"
        );
    }
}

#[tokio::test]
async fn rpl_02_a_dead_letter_is_kept_with_its_reason_and_announced() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    let outcome = Outcome::Fail {
        error: ErrorClass::Gone,
    };
    owed.end(&claimed, &outcome).await;
    let sql = "select d.state || ' ' || d.state_reason || ' ' || d.last_error_class || ' ' || n.state_reason
                      || ' ' || n.attempt_count || ' ' || (n.event_id = d.event_id)
               from hookstead.done_deliveries d join hookstead.dead_letter_notices n using (delivery_id, round)";
    assert_eq!(owed.value(sql).await, "dead_letter gone gone gone 1 true");
}

#[tokio::test]
async fn reports_are_written_only_while_somebody_is_to_be_told() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    owed.fixture
        .run("update hookstead.installation set reporting_since = now()")
        .await;
    owed.end(&claimed, &failure()).await;
    let again = owed.take(claimed.delivery_id, 1, 2).await;
    let mut end = ended(&again, &Outcome::Success, again.claimed_at);
    end.subject = Some(("stripe".to_owned(), "invoice.paid".to_owned()));
    write(&mut owed.worker, &[end]).await;
    let sql = "select string_agg(status || ' ' || attempt_count || ' ' || coalesce(error_class, '-') || ' '
                      || coalesce(provider || ' ' || event_type, '-'), ', ' order by attempt_count)
               from hookstead.reports";
    assert_eq!(
        owed.value(sql).await,
        "retrying 1 server_error -, succeeded 2 - stripe invoice.paid"
    );
}

#[tokio::test]
async fn a_deferral_adds_to_the_budget_and_says_why() {
    let mut owed = owed().await;
    let claimed = one_claimed(&mut owed).await;
    let outcome = Outcome::Defer {
        reason: ReasonCode::CONSUMER_DEFERRED,
        wait: None,
    };
    owed.end(&claimed, &outcome).await;
    let sql = "select state_reason || ' ' || attempt_budget || ' ' || (deferred_until_limit = created_at + interval '5 days')
               from hookstead.live_deliveries";
    assert_eq!(owed.value(sql).await, "consumer_deferred 11 true");
}

#[tokio::test]
async fn failures_are_counted_until_a_sign_of_life() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let mut ends = Vec::new();
    for n in 0..3 {
        let id = owed.receive(&format!("evt_{n}")).await[0];
        let claimed = owed.take(id, 1, 1).await;
        ends.push(ended(&claimed, &failure(), claimed.claimed_at));
    }
    for (end, expected) in ends[..2].iter().zip([1, 2]) {
        let answer = write(&mut owed.worker, std::slice::from_ref(end))
            .await
            .remove(0);
        let FinishAnswer::Finished {
            failing: Some(failing),
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!(failing.consecutive_failures, expected);
    }
    owed.fixture
        .run("update hookstead.subscriptions set paused_until = now() + interval '1 hour'")
        .await;
    ends[2].alive = None;
    assert_eq!(
        write(&mut owed.worker, &ends[2..]).await,
        [FINISHED],
        "a fault of ours says nothing"
    );
    let id = owed.receive("evt_4").await[0];
    owed.fixture
        .run("update hookstead.subscriptions set paused_until = null")
        .await;
    let well = owed.take(id, 1, 1).await;
    owed.fixture
        .run("update hookstead.subscriptions set paused_until = now() + interval '1 hour'")
        .await;
    assert_eq!(owed.end(&well, &Outcome::Success).await, FINISHED);
    let sql = "select consecutive_failures || ' ' || (first_failure_at is null) || ' ' || (paused_until is null)
               from hookstead.subscriptions";
    assert_eq!(owed.value(sql).await, "0 true true");
}

#[tokio::test]
async fn earlier_failures_come_latest_first_and_successes_end_a_row() {
    let mut owed = owed().await;
    let first = one_claimed(&mut owed).await;
    let id = first.delivery_id;
    owed.end(&first, &failure()).await;
    let second = owed.take(id, 1, 2).await;
    let defer = Outcome::Defer {
        reason: ReasonCode::CONSUMER_DEFERRED,
        wait: None,
    };
    owed.end(&second, &defer).await;
    let third = owed.take(id, 1, 3).await;
    owed.end(&third, &failure()).await;
    let earlier = earlier_failures(&mut owed.worker, id, 1).await.unwrap();
    let errors: Vec<_> = earlier
        .iter()
        .map(|key| key.map(|key| (key.error, key.status)))
        .collect();
    let failed = Some((ErrorClass::ServerError, Some(200)));
    assert_eq!(errors, [failed, None, failed]);
}

#[tokio::test]
async fn two_that_end_the_same_leases_write_one_end_each() {
    let mut owed = owed().await;
    owed.fixture.subscribe("one").await;
    let mut ends = Vec::new();
    for n in 0..20 {
        let id = owed.receive(&format!("evt_{n}")).await[0];
        let claimed = owed.take(id, 1, 1).await;
        ends.push(ended(&claimed, &failure(), claimed.claimed_at));
    }
    let mut others = Vec::new();
    for worker in 0..4 {
        let mut connection = owed.fixture.database.connect_as(role::WORKER).await;
        let mut ends = ends.clone();
        if worker % 2 == 0 {
            ends.reverse();
        }
        others.push(tokio::spawn(
            async move { write(&mut connection, &ends).await },
        ));
    }
    let mut finished = 0;
    for other in others {
        let answers = other.await.unwrap();
        finished += answers
            .iter()
            .filter(|answer| **answer != FinishAnswer::LeaseLost)
            .count();
    }
    assert_eq!((finished, owed.fixture.count("attempts").await), (20, 20));
    let failures = "select consecutive_failures::text from hookstead.subscriptions";
    assert_eq!(owed.value(failures).await, "20");
}
