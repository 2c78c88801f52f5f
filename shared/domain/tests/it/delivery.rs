//! Single steps of a delivery: what each does, and what it refuses.

use std::time::Duration;

use hookstead_domain::{
    CancelReason, CancelRefused, Claim, ClaimRefused, DeadLetterReason, Delivery, ErrorClass,
    Finish, Jitter, Lease, LeaseId, LeaseLost, MAX_LOST_LEASES, NotOver, Outcome, ReapRefused,
    ReasonCode, RetryPolicy, State, Terms, Timestamp,
};
use time::macros::datetime;
use uuid::Uuid;

pub(crate) const NOW: Timestamp = datetime!(2026-02-03 04:05:06 UTC);

pub(crate) fn token(number: u128) -> LeaseId {
    LeaseId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn terms(policy: &RetryPolicy, now: Timestamp) -> Terms<'_> {
    Terms {
        policy,
        jitter: Jitter::default(),
        now,
    }
}

/// The next attempt, under the lease of that number, until half a minute after `now`.
pub(crate) fn next_claim(delivery: &Delivery, number: u128, now: Timestamp) -> Claim {
    Claim {
        round: delivery.round,
        attempt: delivery.attempt_count + 1,
        lease: Lease {
            lease_id: token(number),
            expires_at: now.saturating_add(time::Duration::seconds(30)),
        },
    }
}

pub(crate) fn policy(text: &str) -> RetryPolicy {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn failed(error: ErrorClass) -> Outcome {
    Outcome::failed(error, None)
}

fn leased(policy: &RetryPolicy) -> Delivery {
    let fresh = Delivery::new(policy, NOW);
    fresh.claim(&next_claim(&fresh, 1, NOW)).unwrap()
}

fn finished(delivery: &Delivery, outcome: &Outcome, policy: &RetryPolicy) -> Delivery {
    let finish = Finish {
        lease_id: token(1),
        outcome,
        identical: 1,
    };
    delivery.finish(&finish, &terms(policy, NOW)).unwrap()
}

fn wait(delivery: &Delivery) -> Option<Duration> {
    match &delivery.state {
        State::Pending {
            next_attempt_at, ..
        } => (*next_attempt_at - NOW).try_into().ok(),
        _ => None,
    }
}

#[test]
fn a_claim_takes_exactly_the_attempt_that_is_next() {
    let fresh = Delivery::new(&RetryPolicy::default(), NOW);
    let good = next_claim(&fresh, 1, NOW);
    let taken = fresh.claim(&good).unwrap();
    assert_eq!(taken.attempt_count, 1);
    assert_eq!(taken.state, State::Leased(good.lease));
    for (claim, refused) in [
        (Claim { round: 2, ..good }, ClaimRefused::OtherRound),
        (Claim { attempt: 2, ..good }, ClaimRefused::OtherAttempt),
        (Claim { attempt: 0, ..good }, ClaimRefused::OtherAttempt),
    ] {
        assert_eq!(fresh.claim(&claim), Err(refused));
    }
    assert_eq!(
        taken.claim(&next_claim(&taken, 2, NOW)),
        Err(ClaimRefused::Leased)
    );
    let over = finished(&taken, &Outcome::Success, &RetryPolicy::default());
    assert_eq!(
        over.claim(&next_claim(&over, 2, NOW)),
        Err(ClaimRefused::Over)
    );
    let mut spent = fresh;
    spent.attempt_count = spent.attempt_budget;
    assert_eq!(
        spent.claim(&next_claim(&spent, 2, NOW)),
        Err(ClaimRefused::BudgetSpent)
    );
}

#[test]
fn out_04_a_late_worker_changes_nothing() {
    let policy = RetryPolicy::default();
    let by_a = leased(&policy);
    let late = NOW + Duration::from_secs(60);
    let back = by_a.reap(0, &terms(&policy, late)).unwrap();
    let by_b = back.claim(&next_claim(&back, 2, late)).unwrap();
    let report_of_a = Finish {
        lease_id: token(1),
        outcome: &failed(ErrorClass::Timeout),
        identical: 1,
    };
    for delivery in [&back, &by_b] {
        assert_eq!(
            delivery.finish(&report_of_a, &terms(&policy, late)),
            Err(LeaseLost)
        );
        assert_eq!(delivery.extend(token(1), late), Err(LeaseLost));
    }
    let report_of_b = Finish {
        lease_id: token(2),
        outcome: &Outcome::Success,
        identical: 1,
    };
    let over = by_b.finish(&report_of_b, &terms(&policy, late)).unwrap();
    assert_eq!(
        (over.state.clone(), over.attempt_count),
        (State::Succeeded, 2)
    );
    assert_eq!(
        over.finish(&report_of_a, &terms(&policy, late)),
        Err(LeaseLost)
    );
}

#[test]
fn a_lease_is_extended_and_never_shortened() {
    let delivery = leased(&RetryPolicy::default());
    let State::Leased(first) = delivery.state else {
        panic!("it is leased")
    };
    for (until, kept) in [
        (
            first.expires_at + Duration::from_secs(9),
            first.expires_at + Duration::from_secs(9),
        ),
        (NOW, first.expires_at),
    ] {
        let extended = delivery.extend(token(1), until).unwrap();
        let lease = Lease {
            expires_at: kept,
            ..first
        };
        assert_eq!(extended.state, State::Leased(lease));
    }
}

#[test]
fn out_11_a_destination_can_make_a_wait_longer_but_not_shorter() {
    let policy = RetryPolicy::default();
    for (asked, waited) in [(0, 5), (120, 120)] {
        let outcome = Outcome::failed(ErrorClass::RateLimited, Some(Duration::from_secs(asked)));
        let next = finished(&leased(&policy), &outcome, &policy);
        assert_eq!(wait(&next), Some(Duration::from_secs(waited)));
    }
}

#[test]
fn what_cannot_get_better_is_a_dead_letter_at_once() {
    let policy = RetryPolicy::default();
    for (error, reason) in [
        (ErrorClass::Gone, DeadLetterReason::Gone),
        (
            ErrorClass::HandlerFailed,
            DeadLetterReason::PermanentFailure,
        ),
    ] {
        let next = finished(&leased(&policy), &failed(error), &policy);
        assert_eq!(next.state, State::DeadLetter(reason));
    }
}

#[test]
fn equal_refusals_in_a_row_end_a_delivery_and_equal_faults_do_not() {
    let policy = RetryPolicy::default();
    let after = |error, identical| {
        let outcome = failed(error);
        let finish = Finish {
            lease_id: token(1),
            outcome: &outcome,
            identical,
        };
        leased(&policy)
            .finish(&finish, &terms(&policy, NOW))
            .unwrap()
            .state
    };
    let given_up = State::DeadLetter(DeadLetterReason::IdenticalAnswers);
    assert_ne!(after(ErrorClass::ClientError, 4), given_up);
    assert_eq!(after(ErrorClass::ClientError, 5), given_up);
    assert_ne!(after(ErrorClass::ServerError, 50), given_up);
}

#[test]
fn no_attempt_is_made_after_the_greatest_age() {
    let policy = policy(
        r#"{"schedule_s":[60,60],"jitter":0,"timeout_ms":1000,"max_age_s":60,"give_up_after_identical":null}"#,
    );
    let first = finished(&leased(&policy), &failed(ErrorClass::Timeout), &policy);
    assert_eq!(wait(&first), Some(Duration::from_secs(60)));
    let second = first.claim(&next_claim(&first, 1, NOW)).unwrap();
    let later = terms(&policy, NOW + Duration::from_secs(1));
    let outcome = failed(ErrorClass::Timeout);
    let finish = Finish {
        lease_id: token(1),
        outcome: &outcome,
        identical: 1,
    };
    let over = second.finish(&finish, &later).unwrap();
    assert_eq!(over.state, State::DeadLetter(DeadLetterReason::MaxAge));
}

#[test]
fn out_07_three_attempts_are_three_and_then_it_ends() {
    let policy = policy(
        r#"{"schedule_s":[1,1],"jitter":0,"timeout_ms":1000,"max_age_s":60,"give_up_after_identical":null}"#,
    );
    let mut delivery = Delivery::new(&policy, NOW);
    for attempt in 1..=3 {
        assert!(!delivery.is_over());
        delivery = delivery.claim(&next_claim(&delivery, 1, NOW)).unwrap();
        assert_eq!(delivery.attempt_count, attempt);
        delivery = finished(&delivery, &failed(ErrorClass::ClientError), &policy);
    }
    assert_eq!(
        delivery.state,
        State::DeadLetter(DeadLetterReason::BudgetSpent)
    );
}

#[test]
fn a_deferral_costs_no_attempt_and_no_wait_of_the_schedule() {
    let policy = RetryPolicy::default();
    let defer = |wait| Outcome::Defer {
        reason: ReasonCode::CONSUMER_DEFERRED,
        wait,
    };
    let once = finished(&leased(&policy), &defer(None), &policy);
    assert_eq!(wait(&once), Some(Duration::from_secs(60)));
    assert_eq!(once.state.reason(), Some("consumer_deferred"));
    assert_eq!(once.attempt_budget, policy.attempt_budget() + 1);
    let again = once.claim(&next_claim(&once, 1, NOW)).unwrap();
    let next = finished(&again, &failed(ErrorClass::Timeout), &policy);
    assert_eq!(
        wait(&next),
        Some(Duration::from_secs(5)),
        "the first failure"
    );
    let week = Some(Duration::from_secs(7 * 86_400));
    let over = finished(&leased(&policy), &defer(week), &policy);
    assert_eq!(
        over.state,
        State::DeadLetter(DeadLetterReason::DeferredTooLong)
    );
}

#[test]
fn wrk_08_a_delivery_that_kills_its_workers_ends() {
    let policy = RetryPolicy::default();
    let mut delivery = Delivery::new(&policy, NOW);
    let mut now = NOW;
    for lost_before in 0..MAX_LOST_LEASES {
        assert!(!delivery.is_over());
        delivery = delivery.claim(&next_claim(&delivery, 1, now)).unwrap();
        assert_eq!(
            delivery.reap(lost_before, &terms(&policy, now)),
            Err(ReapRefused::StillRuns)
        );
        now += Duration::from_secs(30);
        delivery = delivery.reap(lost_before, &terms(&policy, now)).unwrap();
    }
    assert_eq!(
        delivery.state,
        State::DeadLetter(DeadLetterReason::WorkerLost)
    );
    assert_eq!(delivery.attempt_count, MAX_LOST_LEASES);
    assert_eq!(
        delivery.reap(0, &terms(&policy, now)),
        Err(ReapRefused::NotLeased)
    );
}

#[test]
fn wrk_08_a_last_attempt_that_is_lost_says_so() {
    let policy = policy(
        r#"{"schedule_s":[],"jitter":0,"timeout_ms":1000,"max_age_s":60,"give_up_after_identical":null}"#,
    );
    let late = terms(&policy, NOW + Duration::from_secs(30));
    let over = leased(&policy).reap(0, &late).unwrap();
    assert_eq!(over.state, State::DeadLetter(DeadLetterReason::WorkerLost));
}

#[test]
fn out_13_only_what_is_pending_is_cancelled() {
    let policy = RetryPolicy::default();
    let reason = CancelReason::SubscriptionDisabled;
    let fresh = Delivery::new(&policy, NOW);
    let cancelled = fresh.cancel(reason).unwrap();
    assert_eq!(cancelled.state, State::Cancelled(reason));
    assert_eq!(cancelled.cancel(reason), Err(CancelRefused::Over));
    assert_eq!(leased(&policy).cancel(reason), Err(CancelRefused::Leased));
    let again = cancelled.rearm(&policy, NOW).unwrap();
    assert_eq!((again.round, again.attempt_count), (2, 0));
    assert_eq!(again.rearm(&policy, NOW), Err(NotOver));
    assert_eq!(leased(&policy).rearm(&policy, NOW), Err(NotOver));
}
