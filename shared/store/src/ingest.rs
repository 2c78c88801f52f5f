//! Storing an event: once, whole, in one round trip.

use hookstead_domain::{DeliveryId, EventId, SourceId};
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::connections::Operation;
use crate::error::StoreError;
use crate::payload::PayloadError;

/// The statement behind [`ingest`], as it is sent. Parameters in their order:
/// event id, source id, external event id, idempotency key, event type, tenant,
/// schema version, raw body, content type, payload as JSON text, payload error,
/// headers as JSON, signature verified, verified with, occurred at, received at,
/// region, cause event id, seconds that the relay leaves the deliveries to a kick.
pub const INGEST_SQL: &str = include_str!("../queries/ingest.sql");

/// What the server answers when it cannot make jsonb of a text that we took for
/// JSON: bad text, untranslatable character, unrepresentable number, too complex,
/// program limit, bad encoding.
const PAYLOAD_REFUSALS: [&str; 8] = [
    "22P02", "22P05", "22003", "22021", "22023", "22032", "54000", "54001",
];

/// An event on its way into the database. Borrowed: the body is never copied.
#[derive(Clone, Copy)]
pub struct NewEvent<'a> {
    /// Its id; the time in it decides the partition.
    pub event_id: EventId,
    /// Where it came from.
    pub source_id: SourceId,
    /// The deduplication key within the source: 1 to 512 characters, not blank, no NUL.
    pub external_event_id: &'a str,
    /// The producer's own key, where it gave one. 1 to 512 characters.
    pub idempotency_key: Option<&'a str>,
    /// 1 to 256 characters.
    pub event_type: &'a str,
    /// Whose event it is.
    pub tenant: Option<&'a str>,
    /// 1 to 64 characters.
    pub schema_version: &'a str,
    /// The bytes as they arrived.
    pub raw_body: &'a [u8],
    /// The `Content-Type` as it arrived, at most 1024 characters.
    pub content_type: Option<&'a str>,
    /// The body as JSON text that [`crate::payload`] found fit; `None` where there
    /// is nothing to parse.
    pub payload: Option<&'a str>,
    /// Why there is no payload.
    pub payload_error: Option<PayloadError>,
    /// An object or an array.
    pub headers: &'a Value,
    /// Whether a signature was checked and found good.
    pub signature_verified: bool,
    /// The label of the secret's version that verified it.
    pub verified_with: Option<&'a str>,
    /// When it happened, as the provider says.
    pub occurred_at: Option<OffsetDateTime>,
    /// When it arrived.
    pub received_at: OffsetDateTime,
    /// The event that led to this one.
    pub cause_event_id: Option<EventId>,
    /// The cloud region that received it.
    pub region: Option<&'a str>,
    /// Whether the caller asks for the first attempts itself, right after the commit:
    /// the relay then leaves them alone for [`KICK_GRACE_S`].
    pub kicked: bool,
}

/// Ids and sizes alone: bodies and headers are never printed.
impl std::fmt::Debug for NewEvent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewEvent")
            .field("event_id", &self.event_id)
            .field("source_id", &self.source_id)
            .field("raw_body_bytes", &self.raw_body.len())
            .field("payload_error", &self.payload_error)
            .finish_non_exhaustive()
    }
}

/// How long the relay leaves new deliveries to the kick that follows their commit, in
/// seconds: a kick and its claim take milliseconds, and one that was lost is made up
/// for before anybody minds.
pub const KICK_GRACE_S: u32 = 3;

/// How [`ingest`] ended. Both mean: the event is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// It was new.
    Stored {
        /// What it is owed as: one for each subscription that matches.
        deliveries: Vec<DeliveryId>,
    },
    /// The source already had an event with this key. Nothing was written.
    Duplicate,
}

/// Stores one event and a delivery for each matching subscription: one statement,
/// one round trip, one commit, all or nothing.
///
/// Where the server itself refuses the payload, the event is stored once more
/// without it, marked [`PayloadError::RejectedByDatabase`].
///
/// # Errors
///
/// Any failure means that nothing was written, except a broken connection: there
/// the outcome is unknown, and repeating the call settles it.
pub async fn ingest(
    connection: &mut PgConnection,
    event: &NewEvent<'_>,
) -> Result<Ingested, StoreError> {
    match insert(connection, event).await {
        Err(error) if event.payload.is_some() && refuses_payload(&error) => {
            let raw_only = NewEvent {
                payload: None,
                payload_error: Some(PayloadError::RejectedByDatabase),
                ..*event
            };
            insert(connection, &raw_only).await
        }
        outcome => outcome,
    }
}

/// [`ingest`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct Ingest<'a>(pub &'a NewEvent<'a>);

impl Operation for Ingest<'_> {
    type Output = Ingested;

    async fn run(&self, connection: &mut PgConnection) -> Result<Ingested, StoreError> {
        ingest(connection, self.0).await
    }
}

pub(crate) fn refuses_payload(error: &StoreError) -> bool {
    error
        .sqlstate()
        .is_some_and(|state| PAYLOAD_REFUSALS.contains(&state))
}

async fn insert(
    connection: &mut PgConnection,
    event: &NewEvent<'_>,
) -> Result<Ingested, StoreError> {
    let row = sqlx::query_file!(
        "queries/ingest.sql",
        event.event_id.as_uuid(),
        event.source_id.as_uuid(),
        event.external_event_id,
        event.idempotency_key,
        event.event_type,
        event.tenant,
        event.schema_version,
        event.raw_body,
        event.content_type,
        event.payload,
        event.payload_error.map(PayloadError::code),
        event.headers,
        event.signature_verified,
        event.verified_with,
        event.occurred_at,
        event.received_at,
        event.region,
        event.cause_event_id.map(EventId::as_uuid),
        f64::from(if event.kicked { KICK_GRACE_S } else { 0 }),
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map_or(Ingested::Duplicate, |row| Ingested::Stored {
        deliveries: row
            .deliveries
            .into_iter()
            .map(DeliveryId::from_uuid)
            .collect(),
    }))
}

/// The id of the event that first had this key: what a duplicate is a duplicate of.
///
/// A statement of its own, because [`ingest`] may lose to a transaction that
/// commits while it runs and whose row its own snapshot cannot show.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn first_event_id(
    connection: &mut PgConnection,
    source_id: SourceId,
    external_event_id: &str,
) -> Result<Option<EventId>, StoreError> {
    let found = sqlx::query_scalar!(
        "select event_id from hookstead.event_keys where source_id = $1 and external_event_id = $2",
        source_id.as_uuid(),
        external_event_id,
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.map(EventId::from_uuid))
}

/// [`first_event_id`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct FirstEventId<'a> {
    /// The source.
    pub source_id: SourceId,
    /// The key within it.
    pub external_event_id: &'a str,
}

impl Operation for FirstEventId<'_> {
    type Output = Option<EventId>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Option<EventId>, StoreError> {
        first_event_id(connection, self.source_id, self.external_event_id).await
    }
}
