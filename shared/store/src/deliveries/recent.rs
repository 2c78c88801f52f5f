//! What happened lately: the raw material of a live view.
//!
//! Rows become visible when their transaction commits, which is after the time that
//! stands in them. Whoever follows must therefore ask for a while that overlaps the
//! last one, and leave out what was there already by its id.

use std::time::Duration;

use hookstead_domain::{DeliveryId, EventId};
use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::first_id_at;
use crate::error::StoreError;

/// Most rows of each sort in one answer. What is left out comes with the next
/// question: the oldest ones are given first.
const MAX_ROWS: i64 = 10_000;

/// What happened lately, each sort oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// When it was asked, by the database's clock.
    pub read_at: OffsetDateTime,
    /// Events that were stored.
    pub events: Vec<EventStored>,
    /// Attempts that were over.
    pub attempts: Vec<AttemptEnded>,
    /// Deliveries that were finished.
    pub ended: Vec<DeliveryEnded>,
}

/// An event that was stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventStored {
    /// Its id.
    pub event_id: EventId,
    /// When it arrived.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The name of its source; `None` where the source's row is gone.
    pub source: Option<String>,
    /// Its type.
    pub event_type: String,
    /// The deduplication key.
    pub external_event_id: String,
    /// Length of the body.
    pub body_bytes: i32,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptEnded {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The round.
    pub round: i32,
    /// The attempt's number in that round.
    pub attempt_number: i32,
    /// When it was over.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The subscription's name; `None` where its row or the delivery is gone.
    pub subscription: Option<String>,
    /// `success`, `skip`, `defer`, `retry` or `fail`.
    pub outcome: String,
    /// The status of the answer.
    pub status_code: Option<i32>,
    /// How long the destination took, in milliseconds.
    pub latency_ms: Option<i32>,
    /// The class of the failure.
    pub error_class: Option<String>,
    /// When it is tried again, where it is.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
}

/// A delivery that is finished.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryEnded {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The round that ended.
    pub round: i32,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The event.
    pub event_id: EventId,
    /// The subscription's name; `None` where its row is gone.
    pub subscription: Option<String>,
    /// `succeeded`, `skipped`, `dead_letter` or `cancelled`.
    pub state: String,
    /// Why, where that needs saying.
    pub state_reason: Option<String>,
    /// Attempts of the round.
    pub attempt_count: i32,
}

/// Everything of the last `back`, by the database's clock.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn recent(connection: &mut PgConnection, back: Duration) -> Result<Recent, StoreError> {
    let read_at = sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#)
        .fetch_one(&mut *connection)
        .await?;
    let since = read_at - back;
    Ok(Recent {
        read_at,
        events: events(connection, since).await?,
        attempts: attempts(connection, since).await?,
        ended: ended(connection, since).await?,
    })
}

/// By the id, which carries the time at which the row was made: an event of the outbox
/// may say that it was received before that.
async fn events(
    connection: &mut PgConnection,
    since: OffsetDateTime,
) -> Result<Vec<EventStored>, StoreError> {
    let rows = sqlx::query!(
        r#"select e.event_id, e.received_at, s.name as "source?", e.event_type,
                  e.external_event_id, octet_length(e.raw_body) as "body_bytes!"
           from hookstead.events e
           left join hookstead.sources s using (source_id)
           where e.event_id >= $1
           order by e.event_id
           limit $2"#,
        first_id_at(since),
        MAX_ROWS,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| EventStored {
            event_id: EventId::from_uuid(row.event_id),
            at: row.received_at,
            source: row.source,
            event_type: row.event_type,
            external_event_id: row.external_event_id,
            body_bytes: row.body_bytes,
        })
        .collect())
}

async fn attempts(
    connection: &mut PgConnection,
    since: OffsetDateTime,
) -> Result<Vec<AttemptEnded>, StoreError> {
    let rows = sqlx::query!(
        r#"select a.delivery_id, a.round, a.attempt_number, a.ended_at, t.name as "subscription?",
                  a.outcome, a.status_code, a.latency_ms, a.error_class,
                  l.next_attempt_at as "next_attempt_at?"
           from (
               select * from hookstead.attempts where ended_at >= $1 order by ended_at limit $2
           ) a
           left join hookstead.live_deliveries l
               on l.delivery_id = a.delivery_id and l.round = a.round and l.state = 'pending'
                  and l.attempt_count = a.attempt_number
           left join lateral (
               select coalesce(
                   (select x.subscription_id from hookstead.live_deliveries x
                    where x.delivery_id = a.delivery_id),
                   (select x.subscription_id from hookstead.done_deliveries x
                    where x.delivery_id = a.delivery_id and x.round = a.round)
               ) as subscription_id
           ) d on true
           left join hookstead.subscriptions t on t.subscription_id = d.subscription_id
           order by a.ended_at, a.delivery_id, a.round, a.attempt_number"#,
        since,
        MAX_ROWS,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| AttemptEnded {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            round: row.round,
            attempt_number: row.attempt_number,
            at: row.ended_at,
            subscription: row.subscription,
            outcome: row.outcome,
            status_code: row.status_code,
            latency_ms: row.latency_ms,
            error_class: row.error_class,
            next_attempt_at: row.next_attempt_at,
        })
        .collect())
}

async fn ended(
    connection: &mut PgConnection,
    since: OffsetDateTime,
) -> Result<Vec<DeliveryEnded>, StoreError> {
    let rows = sqlx::query!(
        r#"select d.delivery_id, d.round, d.terminal_at, d.event_id, t.name as "subscription?",
                  d.state, d.state_reason, d.attempt_count
           from hookstead.done_deliveries d
           left join hookstead.subscriptions t using (subscription_id)
           where d.terminal_at >= $1
           order by d.terminal_at, d.delivery_id, d.round
           limit $2"#,
        since,
        MAX_ROWS,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| DeliveryEnded {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            round: row.round,
            at: row.terminal_at,
            event_id: EventId::from_uuid(row.event_id),
            subscription: row.subscription,
            state: row.state,
            state_reason: row.state_reason,
            attempt_count: row.attempt_count,
        })
        .collect())
}
