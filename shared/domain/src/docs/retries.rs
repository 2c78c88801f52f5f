//! docs/retries.md.

use std::fmt::Write as _;

use super::{code, spoken, table, written_from_the_code};
use crate::{
    BREAKER_THRESHOLD, DEFER_WAIT_S, ErrorClass, FAILING_TOO_LONG_S, FIRST_PAUSE_S, FailureKind,
    HttpAnswer, LEASE_MARGIN_MS, LONGEST_PAUSE_S, MAX_AGE_S, MAX_GIVE_UP_AFTER, MAX_LOST_LEASES,
    MAX_RETRIES, MAX_RETRY_AFTER_S, MAX_TIMEOUT_MS, MAX_WAIT_S, MIN_DEFER_WAIT_S, Outcome,
    RetryPolicy, Timestamp,
};

/// docs/retries.md as it has to be.
#[must_use]
pub fn retries_page() -> String {
    let mut page = "# Retries\n\n".to_owned();
    written_from_the_code(&mut page);
    page.push_str("[states.md](states.md) has the states that this page speaks of.\n\n");
    policy(&mut page);
    answers(&mut page);
    waits(&mut page);
    health(&mut page);
    classes(&mut page);
    page
}

fn policy(page: &mut String) {
    let default = RetryPolicy::default();
    let waits: Vec<_> = default
        .schedule()
        .map(|wait| spoken(wait.as_secs()))
        .collect();
    let identical = default.give_up_after_identical().unwrap_or_default();
    page.push_str(
        "## Policy\n\nA subscription has a policy; each round of a delivery keeps the one it began \
with. All five fields are there, and no other. Numbers may have fractions; times count to the \
millisecond.\n\n",
    );
    let rows = [
        (
            "schedule_s",
            "the wait after the first, second, … failure",
            format!(
                "at most {MAX_RETRIES} waits of 0 s to {}",
                spoken(MAX_WAIT_S)
            ),
            waits.join(", "),
        ),
        (
            "jitter",
            "share by which a wait is longer or shorter",
            "0 to 1".to_owned(),
            default.jitter().to_string(),
        ),
        (
            "timeout_ms",
            "time for one attempt",
            format!("1 to {MAX_TIMEOUT_MS}"),
            default.timeout_ms().to_string(),
        ),
        (
            "max_age_s",
            "age of the round after which no attempt is made",
            format!("1 s to {}", spoken(MAX_AGE_S)),
            spoken(default.max_age().as_secs()),
        ),
        (
            "give_up_after_identical",
            "equal refusals in a row that end it",
            format!("1 to {MAX_GIVE_UP_AFTER}, or null: never"),
            identical.to_string(),
        ),
    ];
    let rows = rows.map(|(field, meaning, limits, default)| {
        [code(field), meaning.to_owned(), limits, default]
    });
    table(page, ["field", "meaning", "limits", "default"], rows);
    writeln!(
        page,
        "The first attempt is made at once, so n waits allow n + 1 attempts: {} by default. An \
attempt that would come after the greatest age is not made: the delivery ends there and then. \
Refusals are equal when class, status and SHA-256 of the answer's body are.\n",
        default.attempt_budget(),
    )
    .expect("writing to a String never fails");
}

fn answers(page: &mut String) {
    page.push_str(
        "## Answers\n\nRedirects are not followed. The header `Hookstead-Outcome` refines a 2xx \
and nothing else; a word that is not in the table changes nothing.\n\n",
    );
    let statuses = [
        ("200 to 299", 200, ""),
        ("200 to 299", 200, "skipped"),
        ("200 to 299", 200, "deferred"),
        ("300 to 399", 300, ""),
        ("408", 408, ""),
        ("410", 410, ""),
        ("425", 425, ""),
        ("429", 429, ""),
        ("other 400 to 499", 400, ""),
        ("500 to 599", 500, ""),
        ("anything else", 999, ""),
    ];
    let rows = statuses.map(|(name, status, word)| {
        let words = [word];
        let answer = HttpAnswer {
            status,
            outcome: if word.is_empty() { &[] } else { &words },
            retry_after: &[],
        };
        let outcome = answer.outcome(Timestamp::UNIX_EPOCH);
        let class = outcome
            .error()
            .map_or_else(String::new, |error| code(error.as_str()));
        let header = if word.is_empty() {
            String::new()
        } else {
            code(word)
        };
        [name.to_owned(), header, effect(&outcome).to_owned(), class]
    });
    let head = [
        "status",
        "`Hookstead-Outcome`",
        "the delivery",
        "class of the failure",
    ];
    table(page, head, rows);
    page.push_str("A 410 also disables the subscription.\n\n");
}

/// What becomes of a subscription that only fails.
fn health(page: &mut String) {
    let (first, longest) = (spoken(FIRST_PAUSE_S), spoken(LONGEST_PAUSE_S));
    let too_long = spoken(FAILING_TOO_LONG_S);
    write!(
        page,
        "## Failing subscriptions\n\n\
- **{BREAKER_THRESHOLD} failures without a success between them** pause a subscription for as long \
as it has failed already, from {first} to {longest}. Nothing of it is attempted meanwhile; what \
becomes due waits for the end of the pause and counts no attempt. After a pause one attempt at a time \
is made, until one succeeds.\n\
- **{too_long} with nothing but failures** switch it off, with the reason `failing`. What waits is \
cancelled and can be begun anew when it is switched on again. An event `subscription.disabled` of the \
source `hookstead` says so to whoever subscribes to it.\n\
- **Skips and deferrals count as signs of life**, failures that lie with us count as nothing.\n\n"
    )
    .expect("writing to a String never fails");
}

fn effect(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "has succeeded",
        Outcome::Skip { .. } => "is skipped",
        Outcome::Defer { .. } => "is deferred",
        Outcome::Fail { .. } => "is a dead letter",
        Outcome::Retry { error, .. } => effect_of_kind(error.kind()),
    }
}

const fn effect_of_kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Transient => "is tried again",
        FailureKind::Refusal => "is tried again, until enough equal refusals in a row",
        FailureKind::Permanent => "is a dead letter",
    }
}

fn waits(page: &mut String) {
    writeln!(
        page,
        "## Waits

- **`Retry-After`** makes a wait longer, never shorter: the next attempt comes at the later of the \
scheduled and the stated time. It is read from every failure that is tried again and from \
deferrals: whole seconds or an HTTP date in any of its three forms; of several values the longest \
counts. Past dates, negative numbers and anything else leave the schedule as it is; more than {} \
count as {}.
- **A deferral** that names no time waits {}, and at least {} otherwise. One beyond the round's \
greatest age ends the delivery.
- **A lease** lasts as long as the attempt's timeout and {} more, and is always shorter than the \
time for which the queue hides a claimed message. Where it would not be, the attempt is refused \
rather than shortened.
",
        spoken(MAX_RETRY_AFTER_S),
        spoken(MAX_RETRY_AFTER_S),
        spoken(DEFER_WAIT_S),
        spoken(MIN_DEFER_WAIT_S),
        spoken(LEASE_MARGIN_MS / 1000),
    )
    .expect("writing to a String never fails");
}

fn classes(page: &mut String) {
    page.push_str(
        "## Classes of failures\n\nA class is all that a status report says about a failure. Codes \
are stable: one may be added, none changes its meaning.\n\n",
    );
    let rows = ErrorClass::ALL.iter().map(|class| {
        let effect = match class {
            ErrorClass::WorkerLost => format!("is tried again, until {MAX_LOST_LEASES} in a round"),
            _ => effect_of_kind(class.kind()).to_owned(),
        };
        [code(class.as_str()), class.meaning().to_owned(), effect]
    });
    table(page, ["class", "meaning", "the delivery"], rows);
    page.truncate(page.trim_end().len());
    page.push('\n');
}
