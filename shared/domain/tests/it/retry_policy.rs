//! Policies as they are written, and the waits that follow from them.

use std::time::Duration;

use hookstead_domain::{Jitter, RetryPolicy};
use proptest::prelude::*;

const GOOD: &str = r#"{"schedule_s":[5,0.5],"jitter":0.2,"timeout_ms":1000,"max_age_s":60,"give_up_after_identical":5}"#;

fn parse(text: &str) -> Result<RetryPolicy, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn a_policy_is_all_of_its_keys_within_their_limits() {
    let fifty = format!("[{}5]", "5,".repeat(49));
    let too_many = format!("[{}5]", "5,".repeat(50));
    for (old, new, good) in [
        ("", "", true),
        (":5}", ":null}", true),
        (":5}", ":51}", true),
        (":5}", ":52}", false),
        (":5}", ":0}", false),
        (":5}", ":1.5}", true),
        (":5}", ":\"5\"}", false),
        (",\"give_up_after_identical\":5", "", false),
        (":5}", ":5,\"more\":1}", false),
        ("jitter", "giggle", false),
        (":0.2", ":1", true),
        (":0.2", ":1.2", false),
        (":0.2", ":-0.1", false),
        (":1000", ":0", false),
        (":1000", ":0.5", false),
        (":1000", ":1.5", true),
        (":1000", ":900000", true),
        (":1000", ":900001", false),
        (":1000", ":1e400", false),
        (":60", ":-1", false),
        (":60", ":31536000", true),
        (":60", ":31536001", false),
        ("[5,0.5]", "[]", true),
        ("[5,0.5]", &fifty, true),
        ("[5,0.5]", &too_many, false),
        ("[5,0.5]", "[2592000]", true),
        ("[5,0.5]", "[2592000.5]", false),
        ("[5,0.5]", "[-1]", false),
        ("[5,0.5]", "[\"5\"]", false),
        ("[5,0.5]", "[[5]]", false),
        ("[5,0.5]", "5", false),
    ] {
        let text = GOOD.replacen(old, new, 1);
        assert_eq!(parse(&text).is_ok(), good, "{text}");
    }
    for text in ["{}", "[]", "null", "5", ""] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_refusal_names_the_field() {
    let error = parse(&GOOD.replace(":60", ":0")).unwrap_err().to_string();
    assert!(error.contains("max_age_s is from 1 to"), "{error}");
}

#[test]
fn fractions_count_to_the_nearest_whole_step() {
    let text = GOOD
        .replace("[5,0.5]", "[0.0006]")
        .replace(":1000", ":1.5")
        .replace(":5}", ":1.5}");
    let policy = parse(&text).unwrap();
    assert_eq!(policy.schedule().next(), Some(Duration::from_millis(1)));
    assert_eq!(policy.timeout_ms(), 2);
    assert_eq!(policy.give_up_after_identical(), Some(2));
}

#[test]
fn the_default_waits_are_the_published_ones() {
    let policy = RetryPolicy::default();
    let waits: Vec<u64> = (1..=policy.attempt_budget())
        .map_while(|failures| policy.wait(failures, Jitter::default()))
        .map(|wait| wait.as_secs())
        .collect();
    let (m, h) = (60, 3600);
    assert_eq!(
        waits,
        [
            5,
            5 * m,
            30 * m,
            2 * h,
            5 * h,
            10 * h,
            14 * h,
            20 * h,
            24 * h
        ]
    );
    let longest: Duration = (1..=9)
        .filter_map(|failures| policy.wait(failures, Jitter::new(1.0)))
        .sum();
    assert!(longest < policy.max_age(), "the schedule fits its age");
}

proptest! {
    #[test]
    fn each_failure_uses_the_next_wait_of_the_schedule_and_the_last_one_none(
        policy in policies(), bits: u64,
    ) {
        prop_assert_eq!(policy.wait(0, Jitter::default()), None);
        for (failures, base) in (1..).zip(policy.schedule()) {
            prop_assert_eq!(policy.wait(failures, Jitter::default()), Some(base));
            let wait = policy.wait(failures, Jitter::from_random(bits)).unwrap();
            let spread = base.mul_f64(policy.jitter()) + Duration::from_millis(1);
            prop_assert!(wait <= base + spread && wait + spread >= base);
        }
        prop_assert_eq!(policy.wait(policy.attempt_budget(), Jitter::default()), None);
        prop_assert_eq!(policy.wait(u32::MAX, Jitter::default()), None);
    }

    #[test]
    fn a_policy_reads_what_it_writes(policy in policies()) {
        let text = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(parse(&text).unwrap(), policy);
    }
}

/// Any policy that the database would take.
pub(crate) fn policies() -> impl Strategy<Value = RetryPolicy> {
    let waits = prop::collection::vec(prop_oneof![0.0..=60.0, 0.0..=2_592_000.0], 0..=50);
    let limits = (
        0u16..=1000,
        1u32..=900_000,
        1u32..=31_536_000,
        prop::option::of(1u32..=51),
    );
    (waits, limits).prop_map(|(waits, (jitter, timeout_ms, max_age_s, identical))| {
        // In thousandths, so that writing loses nothing.
        let waits: Vec<f64> = waits
            .iter()
            .map(|wait: &f64| (wait * 1000.0).round() / 1000.0)
            .collect();
        let value = serde_json::json!({
            "schedule_s": waits,
            "jitter": f64::from(jitter) / 1000.0,
            "timeout_ms": timeout_ms,
            "max_age_s": max_age_s,
            "give_up_after_identical": identical,
        });
        serde_json::from_value(value).unwrap()
    })
}
