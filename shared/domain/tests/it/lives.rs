//! Whole lives of deliveries, drawn at random.

use std::time::Duration;

use hookstead_domain::{
    CancelReason, DeadLetterReason, Delivery, ErrorClass, Finish, Jitter, Lease, Move, Outcome,
    ReasonCode, RetryPolicy, State, StateName, TRANSITIONS, Terms, Timestamp,
};
use proptest::prelude::*;

use crate::delivery::{NOW, next_claim, policy, terms, token};
use crate::retry_policy::policies;

/// Anything that anybody may try with a delivery, at the right moment or not.
#[derive(Clone, Debug)]
enum Try {
    Claim {
        stale: bool,
    },
    Extend {
        by: u128,
    },
    Finish {
        by: u128,
        outcome: Outcome,
        identical: u32,
    },
    Reap {
        lost_before: u32,
    },
    Cancel,
    Rearm,
    Wait {
        s: u64,
    },
}

fn errors() -> impl Strategy<Value = ErrorClass> {
    prop::sample::select(ErrorClass::ALL.to_vec())
}

fn waits() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((0u64..200_000).prop_map(Duration::from_secs))
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let reason = ReasonCode::CONSUMER_DEFERRED;
    prop_oneof![
        1 => Just(Outcome::Success),
        1 => Just(Outcome::Skip { reason: ReasonCode::CONSUMER_SKIPPED }),
        1 => waits().prop_map(move |wait| Outcome::Defer { reason: reason.clone(), wait }),
        8 => (errors(), waits()).prop_map(|(error, wait)| Outcome::Retry { error, wait }),
        1 => errors().prop_map(|error| Outcome::Fail { error }),
    ]
}

fn tries() -> impl Strategy<Value = Try> {
    prop_oneof![
        6 => any::<bool>().prop_map(|stale| Try::Claim { stale }),
        1 => (1u128..3).prop_map(|by| Try::Extend { by }),
        6 => (1u128..3, outcomes(), 1u32..60)
            .prop_map(|(by, outcome, identical)| Try::Finish { by, outcome, identical }),
        2 => (0u32..6).prop_map(|lost_before| Try::Reap { lost_before }),
        1 => Just(Try::Cancel),
        2 => Just(Try::Rearm),
        3 => (0u64..100_000).prop_map(|s| Try::Wait { s }),
    ]
}

/// What becomes of a delivery, and by which move; `None`: it was refused.
fn step(delivery: &Delivery, tried: &Try, terms: &Terms<'_>) -> Option<(Option<Move>, Delivery)> {
    let now = terms.now;
    let reason = CancelReason::SubscriptionDeleted;
    match tried {
        Try::Claim { stale } => {
            let mut claim = next_claim(delivery, 1, now);
            claim.attempt -= u32::from(*stale);
            Some((Some(Move::Claim), delivery.claim(&claim).ok()?))
        }
        Try::Extend { by } => Some((None, delivery.extend(token(*by), now).ok()?)),
        Try::Finish {
            by,
            outcome,
            identical,
        } => {
            let finish = Finish {
                lease_id: token(*by),
                outcome,
                identical: *identical,
            };
            Some((Some(Move::Finish), delivery.finish(&finish, terms).ok()?))
        }
        Try::Reap { lost_before } => {
            Some((Some(Move::Reap), delivery.reap(*lost_before, terms).ok()?))
        }
        Try::Cancel => Some((Some(Move::Cancel), delivery.cancel(reason).ok()?)),
        Try::Rearm => Some((Some(Move::Rearm), delivery.rearm(terms.policy, now).ok()?)),
        Try::Wait { .. } => None,
    }
}

fn is_drawn(from: StateName, to: StateName, by: Option<Move>) -> bool {
    // Extending a lease leads nowhere.
    by.map_or(from == to, |by| {
        let mut ways = TRANSITIONS.iter();
        ways.any(|way| (way.from, way.to, way.by) == (from, to, by))
    })
}

proptest! {
    #[test]
    fn every_step_is_one_that_is_drawn_and_keeps_the_budget(
        policy in policies(), tried in prop::collection::vec((tries(), any::<u64>()), 1..80),
    ) {
        let mut delivery = Delivery::new(&policy, NOW);
        let mut now = NOW;
        for (tried, bits) in tried {
            if let Try::Wait { s } = tried {
                now += Duration::from_secs(s);
            }
            let terms = Terms { policy: &policy, jitter: Jitter::from_random(bits), now };
            let Some((by, next)) = step(&delivery, &tried, &terms) else {
                continue;
            };
            let (from, to) = (delivery.state.name(), next.state.name());
            prop_assert!(is_drawn(from, to, by), "{from:?} to {to:?} by {by:?}");
            prop_assert!(next.attempt_count <= next.attempt_budget);
            prop_assert_eq!(next.round, delivery.round + u32::from(by == Some(Move::Rearm)));
            if from.is_terminal() {
                prop_assert_eq!(by, Some(Move::Rearm), "nothing else leaves {:?}", from);
            }
            if let State::Pending { next_attempt_at, .. } = next.state {
                prop_assert!(next_attempt_at >= now);
            }
            delivery = next;
        }
    }

    #[test]
    fn out_07_a_delivery_that_only_fails_ends_within_its_budget_and_its_age(
        policy in policies(), failures in prop::collection::vec((errors(), waits(), any::<u64>()), 51),
    ) {
        let mut delivery = Delivery::new(&policy, NOW);
        let mut attempts = 0;
        let mut now = NOW;
        for (error, wait, bits) in failures {
            let State::Pending { next_attempt_at, .. } = delivery.state else { break };
            now = next_attempt_at;
            prop_assert!(now <= NOW + policy.max_age());
            let outcome = Outcome::Retry { error, wait };
            delivery = attempt(&delivery, &outcome, &policy, bits, now);
            attempts += 1;
        }
        prop_assert!(delivery.is_over(), "{:?}", delivery.state);
        prop_assert!(attempts <= policy.attempt_budget());
        prop_assert_eq!(attempts, delivery.attempt_count);
        prop_assert!(now <= NOW + policy.max_age());
    }

    #[test]
    fn a_delivery_that_is_deferred_for_ever_ends_at_its_limit(
        max_age_s in 1u64..300, wait in waits(), fails in prop::collection::vec(any::<bool>(), 300),
    ) {
        let text = format!(
            r#"{{"schedule_s":[1,2,3],"jitter":0,"timeout_ms":1,"max_age_s":{max_age_s},"give_up_after_identical":null}}"#
        );
        let policy = policy(&text);
        let mut delivery = Delivery::new(&policy, NOW);
        for fails in fails {
            let State::Pending { next_attempt_at, .. } = delivery.state else { break };
            prop_assert!(next_attempt_at <= NOW + policy.max_age());
            let error = ErrorClass::Timeout;
            let reason = ReasonCode::CONSUMER_DEFERRED;
            let wait = wait.map(|wait| wait / 1000);
            let outcome = if fails { Outcome::Retry { error, wait } } else { Outcome::Defer { reason, wait } };
            delivery = attempt(&delivery, &outcome, &policy, 0, next_attempt_at);
        }
        prop_assert!(delivery.is_over(), "{:?}", delivery.state);
    }

    #[test]
    fn the_waits_of_the_schedule_are_used_in_order_whatever_is_deferred_between(
        waits_s in prop::collection::vec(1u64..1000, 0..20),
        deferred in prop::collection::vec(any::<bool>(), 60),
    ) {
        let text = format!(
            r#"{{"schedule_s":{waits_s:?},"jitter":0,"timeout_ms":1,"max_age_s":31536000,"give_up_after_identical":null}}"#
        );
        let policy = policy(&text);
        let mut delivery = Delivery::new(&policy, NOW);
        let mut used = Vec::new();
        for defers in deferred {
            let State::Pending { next_attempt_at: now, .. } = delivery.state else { break };
            let reason = ReasonCode::CONSUMER_DEFERRED;
            let error = ErrorClass::Timeout;
            let outcome = if defers { Outcome::Defer { reason, wait: None } } else { Outcome::failed(error, None) };
            delivery = attempt(&delivery, &outcome, &policy, 0, now);
            if let (false, State::Pending { next_attempt_at, .. }) = (defers, &delivery.state) {
                used.push(u64::try_from((*next_attempt_at - now).whole_seconds()).unwrap());
            }
        }
        prop_assert_eq!(&used[..], &waits_s[..used.len()]);
        prop_assert!(!delivery.is_over() || used.len() == waits_s.len());
    }
}

fn attempt(
    delivery: &Delivery,
    outcome: &Outcome,
    policy: &RetryPolicy,
    bits: u64,
    now: Timestamp,
) -> Delivery {
    let terms = Terms {
        policy,
        jitter: Jitter::from_random(bits),
        now,
    };
    let leased = delivery.claim(&next_claim(delivery, 1, now)).unwrap();
    let finish = Finish {
        lease_id: token(1),
        outcome,
        identical: 1,
    };
    leased.finish(&finish, &terms).unwrap()
}

/// A delivery in each state from which something leads on.
fn standing(state: State) -> Delivery {
    let mut delivery = Delivery::new(&RetryPolicy::default(), NOW);
    delivery.attempt_count = u32::from(matches!(state, State::Leased(_)));
    delivery.state = state;
    delivery
}

#[test]
fn every_transition_that_is_drawn_can_be_made() {
    let default = RetryPolicy::default();
    let lease = Lease {
        lease_id: token(1),
        expires_at: NOW,
    };
    let waiting = Delivery::new(&default, NOW).state;
    let reason = ReasonCode::CONSUMER_SKIPPED;
    let standing = [
        waiting,
        State::Leased(lease),
        State::Succeeded,
        State::Skipped(reason.clone()),
        State::DeadLetter(DeadLetterReason::MaxAge),
        State::Cancelled(CancelReason::SubscriptionDeleted),
    ]
    .map(standing);
    let finish = |outcome| Try::Finish {
        by: 1,
        outcome,
        identical: 1,
    };
    let tried = [
        Try::Claim { stale: false },
        finish(Outcome::Success),
        finish(Outcome::Skip { reason }),
        finish(Outcome::failed(ErrorClass::Timeout, None)),
        finish(Outcome::failed(ErrorClass::Gone, None)),
        Try::Reap { lost_before: 0 },
        Try::Reap { lost_before: 9 },
        Try::Cancel,
        Try::Rearm,
    ];
    for way in TRANSITIONS {
        let mut ends = standing
            .iter()
            .filter(|delivery| delivery.state.name() == way.from)
            .flat_map(|delivery| {
                tried
                    .iter()
                    .filter_map(|t| step(delivery, t, &terms(&default, NOW)))
            });
        let made = ends.any(|(by, next)| by == Some(way.by) && next.state.name() == way.to);
        assert!(made, "{way:?}");
    }
}
