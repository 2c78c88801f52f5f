//! What the database's constraints say must be what the rules here say.

use std::path::Path;

use hookstead_domain::{
    ErrorClass, MAX_AGE_S, MAX_GIVE_UP_AFTER, MAX_RETRIES, MAX_TIMEOUT_MS, MAX_WAIT_S, Outcome,
    ReasonCode, ReportStatus, RetryPolicy, STATUSES, StateName,
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

/// The words of the first list after `start`, as in `check (state in ('a', 'b'))`.
fn words<'a>(sql: &'a str, start: &str) -> Vec<&'a str> {
    let (_, list) = sql.split_once(start).unwrap();
    let (list, _) = list.split_once(')').unwrap();
    list.split(',')
        .map(|word| word.trim().trim_matches('\''))
        .collect()
}

#[test]
fn the_states_are_those_of_the_database() {
    let sql = migration("0005_deliveries.sql");
    let names = |terminal| {
        let all = StateName::ALL.into_iter();
        let some = all.filter(move |state| state.is_terminal() == terminal);
        some.map(StateName::as_str).collect::<Vec<_>>()
    };
    assert_eq!(
        words(&sql, "live_deliveries_state_known check (state in ("),
        names(false)
    );
    assert_eq!(
        words(&sql, "done_deliveries_state_known check (state in ("),
        names(true)
    );
}

#[test]
fn a_state_is_read_by_its_name() {
    for state in StateName::ALL {
        assert_eq!(StateName::from_code(state.as_str()), Some(state));
    }
    assert_eq!(StateName::from_code("failed"), None);
}

#[test]
fn the_outcomes_of_attempts_are_those_of_the_database() {
    let sql = migration("0005_deliveries.sql");
    let reason = ReasonCode::CONSUMER_SKIPPED;
    let error = ErrorClass::Internal;
    let outcomes = [
        Outcome::Success,
        Outcome::Skip {
            reason: reason.clone(),
        },
        Outcome::Defer { reason, wait: None },
        Outcome::Retry { error, wait: None },
        Outcome::Fail { error },
    ];
    let codes = outcomes.each_ref().map(Outcome::as_str);
    assert_eq!(
        words(&sql, "attempts_outcome_known check (outcome in ("),
        codes
    );
    // Whatever must have a class of error has one, and nothing else has.
    let without = words(&sql, "attempts_error_class_given check (outcome in (");
    for outcome in &outcomes {
        assert_eq!(
            outcome.error().is_none(),
            without.contains(&outcome.as_str())
        );
    }
}

#[test]
fn the_statuses_that_can_be_recorded_are_those_of_the_database() {
    let sql = migration("0005_deliveries.sql");
    let range = format!(
        "status_code between {} and {}",
        STATUSES.start(),
        STATUSES.end()
    );
    assert!(sql.contains(&range));
}

#[test]
fn the_statuses_of_reports_are_those_of_the_database() {
    let sql = migration("0006_outboxes.sql");
    let statuses = ReportStatus::ALL.map(ReportStatus::as_str);
    assert_eq!(
        words(&sql, "reports_status_known check (status in ("),
        statuses
    );
}
