//! Reading events back: lists, one event, its exact bytes.

use hookstead_domain::{DeliveryId, EventId, SubscriptionId};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::deliveries::{first_id_at, range_around};
use crate::error::StoreError;

/// Most events of one list. A page of a terminal is fifty; scripts ask again.
const MAX_LIST: u16 = 1000;

/// Which events to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    /// Only of the source of this name.
    pub source: Option<String>,
    /// Only of types that match this pattern with `*`.
    pub event_type: Option<String>,
    /// Only received at or after this time.
    pub since: Option<OffsetDateTime>,
    /// Only older than this event: the last one of the page before.
    pub before: Option<EventId>,
    /// Most events to return, 1 to 1000.
    pub limit: u16,
}

/// One event without its body and headers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventSummary {
    /// Its id.
    pub event_id: EventId,
    /// The name of its source; `None` where the source's row is gone.
    pub source: Option<String>,
    /// The deduplication key.
    pub external_event_id: String,
    /// Its type.
    pub event_type: String,
    /// Whose event it is.
    pub tenant: Option<String>,
    /// When it arrived.
    #[serde(with = "time::serde::rfc3339")]
    pub received_at: OffsetDateTime,
    /// When it happened, as the provider says.
    #[serde(with = "time::serde::rfc3339::option")]
    pub occurred_at: Option<OffsetDateTime>,
    /// Length of the body.
    pub body_bytes: u64,
    /// Whether its signature was checked and found good.
    pub signature_verified: bool,
    /// Why it has no payload.
    pub payload_error: Option<String>,
}

/// One event with everything but its body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventDetail {
    /// What the list shows.
    #[serde(flatten)]
    pub summary: EventSummary,
    /// The producer's own key.
    pub idempotency_key: Option<String>,
    /// The schema version it is written in.
    pub schema_version: String,
    /// The `Content-Type` as it arrived.
    pub content_type: Option<String>,
    /// The label of the secret's version that verified it.
    pub verified_with: Option<String>,
    /// The event that led to this one.
    pub cause_event_id: Option<EventId>,
    /// The cloud region that received it.
    pub region: Option<String>,
    /// Its headers.
    pub headers: Value,
    /// SHA-256 of the body, lower-case hex.
    pub body_sha256: String,
    /// What it is owed to.
    pub deliveries: Vec<DeliverySummary>,
}

/// Where one delivery stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliverySummary {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// How often it was armed, from 1.
    pub round: i32,
    /// Whom it is owed to.
    pub subscription_id: SubscriptionId,
    /// The subscription's name; `None` where its row is gone.
    pub subscription: Option<String>,
    /// `pending`, `leased`, `succeeded`, `skipped`, `dead_letter` or `cancelled`.
    pub state: String,
    /// Why it is in that state, where that needs saying.
    pub state_reason: Option<String>,
    /// Attempts begun in this round.
    pub attempt_count: i32,
    /// Most attempts in this round.
    pub attempt_budget: i32,
    /// When it is due; live ones only.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// When it ended; finished ones only.
    #[serde(with = "time::serde::rfc3339::option")]
    pub terminal_at: Option<OffsetDateTime>,
    /// What the last attempt ended with, where that was an error.
    pub last_error_class: Option<String>,
}

/// Lists events, newest first.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn list_events(
    connection: &mut PgConnection,
    filter: &EventFilter,
) -> Result<Vec<EventSummary>, StoreError> {
    let rows = sqlx::query!(
        r#"select e.event_id, s.name as "source?", e.external_event_id, e.event_type, e.tenant,
                  e.received_at, e.occurred_at, octet_length(e.raw_body) as "body_bytes!",
                  e.signature_verified, e.payload_error
           from hookstead.events e
           left join hookstead.sources s using (source_id)
           where e.event_id < $1
             and e.event_id >= $2
             and e.received_at >= $3
             and ($4::text is null or s.name = $4)
             and ($5::text is null or e.event_type like (hookstead.like_patterns(array[$5]))[1])
           order by e.event_id desc
           limit $6"#,
        filter.before.map_or(Uuid::max(), EventId::as_uuid),
        filter.since.map_or(Uuid::nil(), first_id_at),
        filter.since.unwrap_or(OffsetDateTime::UNIX_EPOCH),
        filter.source,
        filter.event_type,
        i64::from(filter.limit.clamp(1, MAX_LIST)),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| EventSummary {
            event_id: EventId::from_uuid(row.event_id),
            source: row.source,
            external_event_id: row.external_event_id,
            event_type: row.event_type,
            tenant: row.tenant,
            received_at: row.received_at,
            occurred_at: row.occurred_at,
            body_bytes: u64::try_from(row.body_bytes).unwrap_or_default(),
            signature_verified: row.signature_verified,
            payload_error: row.payload_error,
        })
        .collect())
}

/// One event with its headers and deliveries, without its body.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn show_event(
    connection: &mut PgConnection,
    event_id: EventId,
) -> Result<Option<EventDetail>, StoreError> {
    let Some(row) = sqlx::query!(
        r#"select s.name as "source?", e.external_event_id, e.event_type, e.tenant, e.received_at,
                  e.occurred_at, octet_length(e.raw_body) as "body_bytes!", e.signature_verified,
                  e.payload_error, e.idempotency_key, e.schema_version, e.content_type,
                  e.verified_with, e.cause_event_id, e.region, e.headers,
                  encode(sha256(e.raw_body), 'hex') as "body_sha256!"
           from hookstead.events e
           left join hookstead.sources s using (source_id)
           where e.event_id = $1"#,
        event_id.as_uuid(),
    )
    .fetch_optional(&mut *connection)
    .await?
    else {
        return Ok(None);
    };
    Ok(Some(EventDetail {
        summary: EventSummary {
            event_id,
            source: row.source,
            external_event_id: row.external_event_id,
            event_type: row.event_type,
            tenant: row.tenant,
            received_at: row.received_at,
            occurred_at: row.occurred_at,
            body_bytes: u64::try_from(row.body_bytes).unwrap_or_default(),
            signature_verified: row.signature_verified,
            payload_error: row.payload_error,
        },
        idempotency_key: row.idempotency_key,
        schema_version: row.schema_version,
        content_type: row.content_type,
        verified_with: row.verified_with,
        cause_event_id: row.cause_event_id.map(EventId::from_uuid),
        region: row.region,
        headers: row.headers,
        body_sha256: row.body_sha256,
        deliveries: deliveries_of(connection, event_id).await?,
    }))
}

/// The deliveries of an event. They share its time prefix, so a range of ids finds
/// them without an index on the event.
async fn deliveries_of(
    connection: &mut PgConnection,
    event_id: EventId,
) -> Result<Vec<DeliverySummary>, StoreError> {
    let (first, last) = range_around(event_id.as_uuid());
    let rows = sqlx::query!(
        r#"select d.delivery_id as "delivery_id!", d.round as "round!",
                  d.subscription_id as "subscription_id!", s.name as "subscription?",
                  d.state as "state!", d.state_reason, d.attempt_count as "attempt_count!",
                  d.attempt_budget as "attempt_budget!", d.next_attempt_at, d.terminal_at,
                  d.last_error_class
           from hookstead.deliveries d
           left join hookstead.subscriptions s using (subscription_id)
           where d.delivery_id between $1 and $2 and d.event_id = $3
           order by s.name, d.delivery_id"#,
        first,
        last,
        event_id.as_uuid(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| DeliverySummary {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            round: row.round,
            subscription_id: SubscriptionId::from_uuid(row.subscription_id),
            subscription: row.subscription,
            state: row.state,
            state_reason: row.state_reason,
            attempt_count: row.attempt_count,
            attempt_budget: row.attempt_budget,
            next_attempt_at: row.next_attempt_at,
            terminal_at: row.terminal_at,
            last_error_class: row.last_error_class,
        })
        .collect())
}

/// The body of an event, exactly as it arrived.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn pull_event(
    connection: &mut PgConnection,
    event_id: EventId,
) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(sqlx::query_scalar!(
        "select raw_body from hookstead.events where event_id = $1",
        event_id.as_uuid(),
    )
    .fetch_optional(connection)
    .await?)
}
