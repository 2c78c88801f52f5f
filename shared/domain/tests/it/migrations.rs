//! What the database's constraints say must be what the rules here say.

use std::path::Path;

use hookstead_domain::{
    MAX_AGE_S, MAX_GIVE_UP_AFTER, MAX_RETRIES, MAX_TIMEOUT_MS, MAX_WAIT_S, RetryPolicy,
};

fn migration(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/migrations");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_default_policy_is_the_one_of_the_database() {
    let sql = migration("0002_functions.sql");
    let (_, function) = sql.split_once("hookstead.default_retry_policy()").unwrap();
    let (_, text) = function.split_once("jsonb '").unwrap();
    let (text, _) = text.split_once('\'').unwrap();
    let parsed: RetryPolicy = serde_json::from_str(text).unwrap();
    assert_eq!(parsed, RetryPolicy::default());
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(RetryPolicy::default()).unwrap(), value);
}

#[test]
fn the_limits_of_a_policy_are_those_of_the_database() {
    let sql = migration("0002_functions.sql");
    let (_, function) = sql.split_once("hookstead.is_retry_policy(").unwrap();
    for rule in [
        format!("jsonb_array_length(policy -> 'schedule_s') <= {MAX_RETRIES}\n"),
        format!("(@ < 0 || @ > {MAX_WAIT_S})"),
        "(policy -> 'jitter')::numeric between 0 and 1\n".to_owned(),
        format!("(policy -> 'timeout_ms')::numeric between 1 and {MAX_TIMEOUT_MS}\n"),
        format!("(policy -> 'max_age_s')::numeric between 1 and {MAX_AGE_S}\n"),
        format!(
            "(policy -> 'give_up_after_identical')::numeric between 1 and {MAX_GIVE_UP_AFTER}\n"
        ),
    ] {
        assert!(function.contains(&rule), "{rule}");
    }
}
