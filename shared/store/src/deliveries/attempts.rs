//! The attempts of one delivery.

use hookstead_domain::DeliveryId;
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::error::StoreError;

/// One attempt, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// The round it belongs to.
    pub round: i32,
    /// Its number in that round, from 1.
    pub attempt_number: i32,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// When it was over.
    #[serde(with = "time::serde::rfc3339")]
    pub ended_at: OffsetDateTime,
    /// How long the destination took, in milliseconds.
    pub latency_ms: Option<i32>,
    /// The status of the answer, where there was one.
    pub status_code: Option<i32>,
    /// `success`, `skip`, `defer`, `retry` or `fail`.
    pub outcome: String,
    /// The class of the failure.
    pub error_class: Option<String>,
    /// A code that says more; no text of the destination's.
    pub error_detail: Option<String>,
    /// SHA-256 of what was read of the answer's body, lower-case hex.
    pub response_sha256: Option<String>,
    /// Headers of the answer that are kept.
    pub response_headers: Option<Value>,
    /// The destination's own id of the request.
    pub partner_request_id: Option<String>,
    /// The worker that made it.
    pub worker_id: Option<String>,
    /// The cloud region it was made in.
    pub region: Option<String>,
}

/// All attempts of a delivery in all its rounds, oldest first. Empty where there is no
/// such delivery as well as where none was made.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn attempts_of(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
) -> Result<Vec<AttemptRecord>, StoreError> {
    Ok(sqlx::query_as!(
        AttemptRecord,
        r#"select round, attempt_number, started_at, ended_at, latency_ms, status_code, outcome,
                  error_class, error_detail, encode(response_sha256, 'hex') as response_sha256,
                  response_headers, partner_request_id, worker_id, region
           from hookstead.attempts
           where delivery_id = $1
           order by round, attempt_number"#,
        delivery_id.as_uuid(),
    )
    .fetch_all(connection)
    .await?)
}
