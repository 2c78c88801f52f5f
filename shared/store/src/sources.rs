//! Reading sources, as the receiver sees them.

use hookstead_domain::{SourceId, SourceName};
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::connections::Operation;
use crate::error::StoreError;

/// One source, without any secret.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRecord {
    /// Its id.
    pub source_id: SourceId,
    /// Its name, as in the webhook URL.
    pub name: SourceName,
    /// The signing kind.
    pub kind: String,
    /// A signing scheme of its own; `None`: the built-in one of its kind.
    pub scheme: Option<Value>,
    /// Where its secret is kept.
    pub secret_ref: Option<String>,
    /// The URL as registered at the provider, which some schemes sign.
    pub public_url: Option<String>,
    /// Overrides the kind's freshness window, in seconds.
    pub tolerance_s: Option<u32>,
    /// Patterns with `*`; empty: every type.
    pub allowed_event_types: Vec<String>,
    /// Overrides the kind's rule for the deduplication key.
    pub dedupe_rule: Option<String>,
    /// Whose events these are.
    pub tenant: Option<String>,
    /// The schema version its events are written in now.
    pub schema_version: String,
    /// Versions it no longer writes.
    pub retired_schema_versions: Vec<String>,
    /// Whether status reports may name provider and event type.
    pub report_event_type: bool,
    /// Since when it takes nothing any more.
    pub disabled_at: Option<OffsetDateTime>,
}

/// The columns as they come.
struct Row {
    source_id: Uuid,
    name: String,
    kind: String,
    scheme: Option<Value>,
    secret_ref: Option<String>,
    public_url: Option<String>,
    tolerance_s: Option<i32>,
    allowed_event_types: Vec<String>,
    dedupe_rule: Option<String>,
    tenant: Option<String>,
    schema_version: String,
    retired_schema_versions: Vec<String>,
    report_event_type: bool,
    disabled_at: Option<OffsetDateTime>,
}

/// The source of this name, disabled or not.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn source_by_name(
    connection: &mut PgConnection,
    name: &SourceName,
) -> Result<Option<SourceRecord>, StoreError> {
    sqlx::query_as!(
        Row,
        "select source_id, name, kind, scheme, secret_ref, public_url, tolerance_s,
                allowed_event_types, dedupe_rule, tenant, schema_version,
                retired_schema_versions, report_event_type, disabled_at
         from hookstead.sources
         where name = $1",
        name.as_str(),
    )
    .fetch_optional(connection)
    .await?
    .map(SourceRecord::try_from)
    .transpose()
}

/// Every source that takes events over HTTP, by name: not those of kind `outbox`, whose
/// events come by publishing.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn enabled_sources(
    connection: &mut PgConnection,
) -> Result<Vec<SourceRecord>, StoreError> {
    sqlx::query_as!(
        Row,
        "select source_id, name, kind, scheme, secret_ref, public_url, tolerance_s,
                allowed_event_types, dedupe_rule, tenant, schema_version,
                retired_schema_versions, report_event_type, disabled_at
         from hookstead.sources
         where disabled_at is null and kind <> 'outbox'
         order by name",
    )
    .fetch_all(connection)
    .await?
    .into_iter()
    .map(SourceRecord::try_from)
    .collect()
}

/// [`enabled_sources`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct EnabledSources;

impl Operation for EnabledSources {
    type Output = Vec<SourceRecord>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Vec<SourceRecord>, StoreError> {
        enabled_sources(connection).await
    }
}

impl TryFrom<Row> for SourceRecord {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            source_id: SourceId::from_uuid(row.source_id),
            name: row
                .name
                .parse()
                .map_err(|_| StoreError::Unexpected("column name".to_owned()))?,
            kind: row.kind,
            scheme: row.scheme,
            secret_ref: row.secret_ref,
            public_url: row.public_url,
            // A check keeps it from being negative.
            tolerance_s: row.tolerance_s.and_then(|s| u32::try_from(s).ok()),
            allowed_event_types: row.allowed_event_types,
            dedupe_rule: row.dedupe_rule,
            tenant: row.tenant,
            schema_version: row.schema_version,
            retired_schema_versions: row.retired_schema_versions,
            report_event_type: row.report_event_type,
            disabled_at: row.disabled_at,
        })
    }
}
