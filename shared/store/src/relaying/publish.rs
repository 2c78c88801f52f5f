//! Announcing an event, as a business application does in its own transaction.

use hookstead_domain::{EventId, Timestamp};
use sqlx::PgConnection;
use uuid::Uuid;

use super::operation;
use crate::error::StoreError;

/// What to announce. Left out, a field takes the default of `hookstead.publish_raw`.
#[derive(Clone, Copy)]
pub struct PublishRequest<'a> {
    /// 1 to 256 characters.
    pub event_type: &'a str,
    /// The body, at most 4 MiB, as consumers get it.
    pub body: &'a [u8],
    /// What the body is.
    pub content_type: &'a str,
    /// The name of a source of kind `outbox`.
    pub source: &'a str,
    /// What it is about: kind and id.
    pub aggregate: Option<(&'a str, &'a str)>,
    /// Whose event it is.
    pub tenant: Option<&'a str>,
    /// The producer's own key, fresh for each event: it makes repeating this safe.
    pub idempotency_key: &'a str,
    /// When it happened; `None`: now.
    pub occurred_at: Option<Timestamp>,
    /// The event that led to it.
    pub cause_event_id: Option<EventId>,
    /// The version of its schema; `None`: the source's.
    pub schema_version: Option<&'a str>,
}

/// The size alone: bodies are never printed.
impl std::fmt::Debug for PublishRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishRequest")
            .field("source", &self.source)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Announces an event: once the caller's transaction commits, the relay expands it.
/// Returns the id of the outbox row. Safe to repeat: the key makes the second one a
/// duplicate.
///
/// # Errors
///
/// Those of the server and of the connection; [`PublishRefusal::of`] tells what
/// `publish` itself refused.
pub async fn publish(
    connection: &mut PgConnection,
    request: &PublishRequest<'_>,
) -> Result<Uuid, StoreError> {
    let (aggregate_type, aggregate_id) = match request.aggregate {
        Some((kind, id)) => (kind, Some(id)),
        None => ("event", None),
    };
    let outbox_id = sqlx::query_scalar!(
        r#"select hookstead.publish_raw(
               event_type => $1, body => $2, content_type => $3, source => $4,
               aggregate_type => $5, aggregate_id => $6, tenant => $7, idempotency_key => $8,
               occurred_at => coalesce($9, now()), cause_event_id => $10, schema_version => $11
           ) as "outbox_id!""#,
        request.event_type,
        request.body,
        request.content_type,
        request.source,
        aggregate_type,
        aggregate_id,
        request.tenant,
        request.idempotency_key,
        request.occurred_at,
        request.cause_event_id.map(EventId::as_uuid),
        request.schema_version,
    )
    .fetch_one(connection)
    .await?;
    Ok(outbox_id)
}

operation!(PublishRequest<'_> => Uuid, |this, connection| publish(connection, this));

/// Why `publish` refuses. Codes and SQLSTATEs are stable; docs/errors.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishRefusal {
    /// There is no source of this name.
    UnknownSource,
    /// The source is switched off.
    SourceDisabled,
    /// The source is not of kind `outbox`.
    NotAnOutboxSource,
    /// The source is Hookstead's own.
    ReservedSource,
    /// The source does not take events of this type.
    EventTypeNotAllowed,
    /// The source does not write this schema version any more.
    RetiredSchemaVersion,
    /// The source belongs to another tenant.
    TenantNotAllowed,
    /// The body is larger than 4 MiB.
    BodyTooLarge,
    /// An argument is missing, blank, too long or out of range.
    InvalidArgument,
}

impl PublishRefusal {
    /// All of them, in the order of their SQLSTATEs.
    pub const ALL: [Self; 9] = [
        Self::UnknownSource,
        Self::SourceDisabled,
        Self::NotAnOutboxSource,
        Self::ReservedSource,
        Self::EventTypeNotAllowed,
        Self::RetiredSchemaVersion,
        Self::TenantNotAllowed,
        Self::BodyTooLarge,
        Self::InvalidArgument,
    ];

    /// What the server's refusal means; `None` where it is not one of `publish`.
    #[must_use]
    pub fn of(error: &StoreError) -> Option<Self> {
        let state = error.sqlstate()?;
        Self::ALL
            .into_iter()
            .find(|refusal| refusal.sqlstate() == state)
    }

    /// The code that the server's message begins with.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::UnknownSource => "unknown_source",
            Self::SourceDisabled => "source_disabled",
            Self::NotAnOutboxSource => "not_an_outbox_source",
            Self::ReservedSource => "reserved_source",
            Self::EventTypeNotAllowed => "event_type_not_allowed",
            Self::RetiredSchemaVersion => "retired_schema_version",
            Self::TenantNotAllowed => "tenant_not_allowed",
            Self::BodyTooLarge => "body_too_large",
            Self::InvalidArgument => "invalid_argument",
        }
    }

    /// The server's error code.
    #[must_use]
    pub const fn sqlstate(self) -> &'static str {
        match self {
            Self::UnknownSource => "WH001",
            Self::SourceDisabled => "WH002",
            Self::NotAnOutboxSource => "WH003",
            Self::ReservedSource => "WH004",
            Self::EventTypeNotAllowed => "WH005",
            Self::RetiredSchemaVersion => "WH006",
            Self::TenantNotAllowed => "WH007",
            Self::BodyTooLarge => "WH008",
            Self::InvalidArgument => "WH009",
        }
    }
}
