//! Reading subscriptions.

use hookstead_domain::SubscriptionId;
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::error::StoreError;

/// One subscription, without any secret.
///
/// Its destination may hold what is nobody else's business, in headers or in the URL;
/// whoever prints it takes those out.
#[derive(Clone, PartialEq, Serialize)]
pub struct SubscriptionRecord {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// Its name.
    pub name: String,
    /// Only events of this source; `None`: of all.
    pub source: Option<String>,
    /// Only events of this tenant; `None`: of all.
    pub tenant: Option<String>,
    /// Patterns with `*`; empty: every type.
    pub event_types: Vec<String>,
    /// Its payload filter, as the server writes it.
    pub payload_filter: Option<String>,
    /// Where it goes: an object with a `kind`.
    pub destination: Value,
    /// All five fields of its retry policy.
    pub retry_policy: Value,
    /// The schema version the consumer was written for.
    pub schema_version: Option<String>,
    /// Most deliveries per second.
    pub rate_limit_per_s: Option<i32>,
    /// Whether it has a signing secret.
    pub has_secret: bool,
    /// Until when its previous secret signs as well.
    #[serde(with = "time::serde::rfc3339::option")]
    pub previous_until: Option<OffsetDateTime>,
    /// `manifest` or `command`: whose entry it is.
    pub managed_by: String,
    /// Until when it is left alone after failures.
    #[serde(with = "time::serde::rfc3339::option")]
    pub paused_until: Option<OffsetDateTime>,
    /// Failures since the last success.
    pub consecutive_failures: i32,
    /// When the first of them was.
    #[serde(with = "time::serde::rfc3339::option")]
    pub first_failure_at: Option<OffsetDateTime>,
    /// Since when it gets nothing.
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
    /// Why, where somebody said so.
    pub disabled_reason: Option<String>,
}

impl std::fmt::Debug for SubscriptionRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubscriptionRecord")
            .field("subscription_id", &self.subscription_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The columns as they come.
struct Row {
    subscription_id: Uuid,
    name: String,
    source: Option<String>,
    tenant: Option<String>,
    event_types: Vec<String>,
    payload_filter: Option<String>,
    destination: Value,
    retry_policy: Value,
    schema_version: Option<String>,
    rate_limit_per_s: Option<i32>,
    has_secret: bool,
    previous_until: Option<OffsetDateTime>,
    managed_by: String,
    paused_until: Option<OffsetDateTime>,
    consecutive_failures: i32,
    first_failure_at: Option<OffsetDateTime>,
    disabled_at: Option<OffsetDateTime>,
    disabled_reason: Option<String>,
}

/// Every subscription, by name.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn list_subscriptions(
    connection: &mut PgConnection,
) -> Result<Vec<SubscriptionRecord>, StoreError> {
    read(connection, None).await
}

/// The subscription of this name, disabled or not.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn subscription_by_name(
    connection: &mut PgConnection,
    name: &str,
) -> Result<Option<SubscriptionRecord>, StoreError> {
    Ok(read(connection, Some(name)).await?.pop())
}

async fn read(
    connection: &mut PgConnection,
    name: Option<&str>,
) -> Result<Vec<SubscriptionRecord>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select t.subscription_id, t.name, s.name as "source?", t.tenant, t.event_types,
                  t.payload_filter::text as payload_filter, t.destination, t.retry_policy,
                  t.schema_version, t.rate_limit_per_s,
                  t.secret_current is not null as "has_secret!", t.previous_until, t.managed_by,
                  t.paused_until, t.consecutive_failures, t.first_failure_at, t.disabled_at,
                  t.disabled_reason
           from hookstead.subscriptions t
           left join hookstead.sources s using (source_id)
           where $1::text is null or t.name = $1
           order by t.name"#,
        name,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(SubscriptionRecord::from).collect())
}

impl From<Row> for SubscriptionRecord {
    fn from(row: Row) -> Self {
        Self {
            subscription_id: SubscriptionId::from_uuid(row.subscription_id),
            name: row.name,
            source: row.source,
            tenant: row.tenant,
            event_types: row.event_types,
            payload_filter: row.payload_filter,
            destination: row.destination,
            retry_policy: row.retry_policy,
            schema_version: row.schema_version,
            rate_limit_per_s: row.rate_limit_per_s,
            has_secret: row.has_secret,
            previous_until: row.previous_until,
            managed_by: row.managed_by,
            paused_until: row.paused_until,
            consecutive_failures: row.consecutive_failures,
            first_failure_at: row.first_failure_at,
            disabled_at: row.disabled_at,
            disabled_reason: row.disabled_reason,
        }
    }
}
