//! Ending attempts.

use std::collections::HashMap;

use hookstead_domain::{
    Delivery, DeliveryId, ErrorClass, FailureKey, LeaseId, ReportId, ReportStatus, State, Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::claim::unexpected;
use crate::connections::Operation;
use crate::error::StoreError;

/// The statement behind [`finish`], as it is sent: `$1` is an array of objects as
/// `hookstead.finish_attempts` in migration 0010 reads them.
pub const FINISH_SQL: &str =
    "select delivery_id, consecutive_failures, first_failure_at from hookstead.finish_attempts($1)";

/// What happened in an attempt, for its row. No text of the destination's is in it
/// but the values of allow-listed headers.
#[derive(Clone, Debug)]
pub struct AttemptFacts {
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; not before it began.
    pub ended_at: Timestamp,
    /// How long the destination took, in milliseconds.
    pub latency_ms: Option<u32>,
    /// The answer's status, 100 to 599.
    pub status_code: Option<u16>,
    /// The outcome's code.
    pub outcome: &'static str,
    /// Why it failed, if it did.
    pub error_class: Option<ErrorClass>,
    /// More about that, scrubbed: at most 2048 characters.
    pub error_detail: Option<String>,
    /// The SHA-256 of what was read of the answer.
    pub response_sha256: Option<[u8; 32]>,
    /// Allow-listed headers of the answer: an object of texts.
    pub response_headers: Option<Value>,
    /// The destination's own id of the request, at most 256 characters.
    pub partner_request_id: Option<String>,
}

/// The end of one attempt.
#[derive(Clone, Debug)]
pub struct FinishedAttempt {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The lease that the attempt ran under.
    pub lease_id: LeaseId,
    /// Only if the lease has run out: for whoever takes a lost one away.
    pub expired_only: bool,
    /// Where the delivery stands now, by the rules of the domain.
    pub next: Delivery,
    /// What happened.
    pub facts: AttemptFacts,
    /// What it says about the destination: that it works, that it does not, or nothing.
    pub alive: Option<bool>,
    /// Kind and event type, where the source lets reports name them.
    pub subject: Option<(String, String)>,
}

/// The ends of a batch, and who writes them.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    /// What ended.
    pub attempts: &'a [FinishedAttempt],
    /// Who attempted it: at most 256 characters.
    pub worker_id: &'a str,
    /// Where.
    pub region: Option<&'a str>,
}

/// What became of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishAnswer {
    /// It is written.
    Finished {
        /// What the failures of its subscription have come to, if this was one.
        failing: Option<Failing>,
    },
    /// The lease was lost: nothing of it is written. To be logged.
    LeaseLost,
}

/// How a subscription stands after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Failures without a success between them, this one included.
    pub consecutive_failures: u32,
    /// When the first of them came.
    pub first_failure_at: Timestamp,
}

/// Ends a batch of attempts: one statement, one commit. Each one is written whole
/// or, where its lease was lost, not at all. Answers come in the order of the attempts.
///
/// # Errors
///
/// Those of the server and of the connection. After a broken connection the outcome
/// is unknown; the same call may be repeated, and says `LeaseLost` of what is written.
pub async fn finish(
    connection: &mut PgConnection,
    batch: &Finish<'_>,
) -> Result<Vec<FinishAnswer>, StoreError> {
    let written: Result<Vec<_>, _> = batch
        .attempts
        .iter()
        .map(|attempt| Written::of(attempt, batch))
        .collect();
    let written = serde_json::to_value(written?).map_err(|_| unexpected("finishes"))?;
    let rows = sqlx::query!(
        r#"select delivery_id as "delivery_id!", consecutive_failures, first_failure_at
           from hookstead.finish_attempts($1)"#,
        written,
    )
    .fetch_all(connection)
    .await?;
    let mut finished: HashMap<Uuid, Option<Failing>> = HashMap::with_capacity(rows.len());
    for row in rows {
        let failures = row.consecutive_failures.and_then(|n| u32::try_from(n).ok());
        let failing =
            failures
                .zip(row.first_failure_at)
                .map(|(consecutive_failures, first_failure_at)| Failing {
                    consecutive_failures,
                    first_failure_at,
                });
        finished.insert(row.delivery_id, failing);
    }
    let answer = |attempt: &FinishedAttempt| match finished.get(&attempt.delivery_id.as_uuid()) {
        Some(failing) => FinishAnswer::Finished { failing: *failing },
        None => FinishAnswer::LeaseLost,
    };
    Ok(batch.attempts.iter().map(answer).collect())
}

impl Operation for Finish<'_> {
    type Output = Vec<FinishAnswer>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        finish(connection, self).await
    }
}

/// The earlier attempts of a round, latest first: what each failed with, `None` for
/// one that did not fail. For [`hookstead_domain::identical_in_a_row`].
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn earlier_failures(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
    round: u32,
) -> Result<Vec<Option<FailureKey>>, StoreError> {
    let rows = sqlx::query!(
        "select outcome, error_class, status_code, response_sha256
         from hookstead.attempts
         where delivery_id = $1 and round = $2
         order by attempt_number desc",
        delivery_id.as_uuid(),
        i32::try_from(round).unwrap_or(0),
    )
    .fetch_all(connection)
    .await?;
    let key = |row: (String, Option<String>, Option<i32>, Option<Vec<u8>>)| {
        let (outcome, error, status, digest) = row;
        let failed = outcome == "retry" || outcome == "fail";
        Some(FailureKey {
            error: error.filter(|_| failed)?.parse().ok()?,
            status: status.and_then(|status| u16::try_from(status).ok()),
            response_sha256: digest.and_then(|digest| digest.try_into().ok()),
        })
    };
    let rows = rows.into_iter();
    Ok(rows
        .map(|row| {
            key((
                row.outcome,
                row.error_class,
                row.status_code,
                row.response_sha256,
            ))
        })
        .collect())
}

/// One element of what `hookstead.finish_attempts` takes.
#[derive(Serialize)]
struct Written<'a> {
    delivery_id: Uuid,
    round: u32,
    attempt: u32,
    lease_id: Uuid,
    expired_only: bool,
    state: &'static str,
    state_reason: Option<&'a str>,
    next_attempt_at: Option<String>,
    attempt_budget: u32,
    deferred_until_limit: Option<String>,
    started_at: String,
    ended_at: String,
    latency_ms: Option<u32>,
    status_code: Option<u16>,
    outcome: &'static str,
    error_class: Option<ErrorClass>,
    error_detail: Option<&'a str>,
    response_sha256: Option<String>,
    response_headers: Option<&'a Value>,
    partner_request_id: Option<&'a str>,
    worker_id: &'a str,
    region: Option<&'a str>,
    alive: Option<bool>,
    report_id: Uuid,
    report_status: Option<&'static str>,
    provider: Option<&'a str>,
    event_type: Option<&'a str>,
}

impl<'a> Written<'a> {
    fn of(attempt: &'a FinishedAttempt, batch: &Finish<'a>) -> Result<Self, StoreError> {
        let next = &attempt.next;
        let facts = &attempt.facts;
        let next_attempt_at = match next.state {
            State::Pending {
                next_attempt_at, ..
            } => Some(moment(next_attempt_at)?),
            _ => None,
        };
        let report_id = ReportId::derive(attempt.delivery_id, next.round, next.attempt_count);
        let subject = attempt.subject.as_ref();
        Ok(Self {
            delivery_id: attempt.delivery_id.as_uuid(),
            round: next.round,
            attempt: next.attempt_count,
            lease_id: attempt.lease_id.as_uuid(),
            expired_only: attempt.expired_only,
            state: next.state.name().as_str(),
            state_reason: next.state.reason(),
            next_attempt_at,
            attempt_budget: next.attempt_budget,
            deferred_until_limit: next.deferred_until_limit.map(moment).transpose()?,
            started_at: moment(facts.started_at)?,
            ended_at: moment(facts.ended_at)?,
            latency_ms: facts.latency_ms,
            status_code: facts.status_code,
            outcome: facts.outcome,
            error_class: facts.error_class,
            error_detail: facts.error_detail.as_deref(),
            response_sha256: facts.response_sha256.as_ref().map(hex),
            response_headers: facts.response_headers.as_ref(),
            partner_request_id: facts.partner_request_id.as_deref(),
            worker_id: batch.worker_id,
            region: batch.region,
            alive: attempt.alive,
            report_id: report_id.as_uuid(),
            report_status: ReportStatus::of(next.state.name()).map(ReportStatus::as_str),
            provider: subject.map(|(provider, _)| provider.as_str()),
            event_type: subject.map(|(_, event_type)| event_type.as_str()),
        })
    }
}

fn moment(at: Timestamp) -> Result<String, StoreError> {
    at.format(&Rfc3339).map_err(|_| unexpected("timestamp"))
}

fn hex(bytes: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String never fails");
            text
        })
}
