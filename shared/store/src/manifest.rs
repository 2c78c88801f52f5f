//! Making the configuration in the database what a manifest says.
//!
//! Sources and subscriptions are matched by name. What the manifest no longer
//! names is disabled, never deleted: its events stay explainable. Everything is
//! decided and written in one transaction, with a line in the audit log.

mod decide;
mod sources;
mod subscriptions;

pub(crate) use subscriptions::{check as check_subscription, insert as insert_subscription};

use hookstead_domain::{EventTypePattern, SourceName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{Connection, PgConnection};

use crate::error::StoreError;
use crate::subscriptions::{NewSecret, store_if_none};

/// Why a subscription is disabled that the manifest no longer names. Only this
/// reason is taken back when the name reappears: a destination that said it is
/// gone stays switched off until an operator switches it on.
const REMOVED: &str = "removed_from_manifest";

/// Two that apply at once take turns. Any number will do.
const APPLY_LOCK: i64 = 0x686f_6f6b_6170_706c;

/// What the configuration should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Desired {
    /// All sources there should be.
    pub sources: Vec<DesiredSource>,
    /// All subscriptions there should be.
    pub subscriptions: Vec<DesiredSubscription>,
}

/// A source as it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredSource {
    /// Its name, which stands in the webhook URL.
    pub name: SourceName,
    /// The signing kind.
    pub kind: String,
    /// A signing scheme of its own, validated by the caller.
    #[serde(default)]
    pub scheme: Option<Value>,
    /// Where its secret is kept.
    #[serde(default)]
    pub secret_ref: Option<String>,
    /// The URL as registered at the provider.
    #[serde(default)]
    pub public_url: Option<String>,
    /// Overrides the kind's freshness window, in seconds.
    #[serde(default)]
    pub tolerance_s: Option<u32>,
    /// Empty: every type.
    #[serde(default)]
    pub allowed_event_types: Vec<EventTypePattern>,
    /// Overrides the kind's rule for the deduplication key.
    #[serde(default)]
    pub dedupe_rule: Option<String>,
    /// Whose events these are.
    #[serde(default)]
    pub tenant: Option<String>,
    /// The schema version its events are written in now.
    #[serde(default = "first_version")]
    pub schema_version: String,
    /// Versions it no longer writes.
    #[serde(default)]
    pub retired_schema_versions: Vec<String>,
    /// Whether status reports may name provider and event type.
    #[serde(default)]
    pub report_event_type: bool,
}

fn first_version() -> String {
    "1".to_owned()
}

/// A subscription as it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredSubscription {
    /// Its name, shaped like a source's.
    pub name: SourceName,
    /// Only events of this source; `None`: of all.
    #[serde(default)]
    pub source: Option<SourceName>,
    /// Only events of this tenant; `None`: of all.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Empty: every type.
    #[serde(default)]
    pub event_types: Vec<EventTypePattern>,
    /// An SQL/JSON path; the event passes when its first item is there and is
    /// neither false nor null.
    #[serde(default)]
    pub payload_filter: Option<String>,
    /// Where it goes: an object with a `kind`.
    pub destination: Value,
    /// All five keys of a retry policy; `None`: the default one.
    #[serde(default)]
    pub retry_policy: Option<Value>,
    /// The schema version the consumer was written for.
    #[serde(default)]
    pub schema_version: Option<String>,
    /// Most deliveries per second.
    #[serde(default)]
    pub rate_limit_per_s: Option<u32>,
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A source.
    Source,
    /// A subscription.
    Subscription,
}

/// What applying does to one source or subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// It is new.
    Create,
    /// It changes.
    Update {
        /// The fields that differ.
        fields: Vec<&'static str>,
    },
    /// It was disabled and takes part again.
    Enable {
        /// The fields that differ as well.
        fields: Vec<&'static str>,
    },
    /// The manifest does not name it any more.
    Disable,
    /// It was disabled for a reason that a manifest does not take back. It is
    /// brought up to date and stays disabled.
    StaysDisabled {
        /// The reason.
        reason: String,
        /// The fields that differ.
        fields: Vec<&'static str>,
    },
    /// It is as it should be.
    Unchanged,
}

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Source or subscription.
    pub subject: Subject,
    /// Its name.
    pub name: String,
    /// What happens to it.
    #[serde(flatten)]
    pub action: Action,
}

/// What applying a manifest does: sources first, each kind by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// One line for each source and subscription, the unchanged ones included.
    /// Those that are disabled and not named are left out.
    pub changes: Vec<Change>,
}

impl Plan {
    /// Whether applying it writes anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(|change| match &change.action {
            Action::Unchanged => true,
            Action::StaysDisabled { fields, .. } => fields.is_empty(),
            _ => false,
        })
    }
}

/// A manifest that cannot be applied. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} '{name}': {problem}", subject = self.subject_word(), problem = self.problem())]
pub struct ManifestError {
    /// A stable code: `duplicate_name`, `unknown_source`, `invalid_filter`,
    /// `invalid_retry_policy` or `invalid_value`.
    pub code: &'static str,
    /// What it is about.
    pub subject: Subject,
    /// Its name.
    pub name: String,
    /// The constraint that refused a value, for `invalid_value`.
    pub constraint: Option<String>,
}

impl ManifestError {
    fn subject_word(&self) -> &'static str {
        match self.subject {
            Subject::Source => "source",
            Subject::Subscription => "subscription",
        }
    }

    fn problem(&self) -> String {
        match (self.code, &self.constraint) {
            ("duplicate_name", _) => "it is named twice".to_owned(),
            ("unknown_source", _) => "its source is not in the manifest".to_owned(),
            ("invalid_filter", _) => {
                "its payload filter is not an SQL/JSON path without variables".to_owned()
            }
            ("invalid_retry_policy", _) => {
                "its retry policy needs schedule_s, jitter, timeout_ms, max_age_s and \
                 give_up_after_identical, each within its limits"
                    .to_owned()
            }
            (_, Some(constraint)) => format!("a value is refused by {constraint}"),
            (code, None) => format!("refused ({code})"),
        }
    }
}

/// Says what [`apply`] would do, and does nothing.
///
/// # Errors
///
/// [`StoreError::Manifest`] where it cannot be applied; those of the server and of
/// the connection.
pub async fn plan(connection: &mut PgConnection, desired: &Desired) -> Result<Plan, StoreError> {
    decide::decide(connection, desired)
        .await
        .map(|decided| decided.plan)
}

/// What applying did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The changes.
    pub plan: Plan,
    /// The subscriptions that got the secret offered for them, by name.
    pub secrets_issued: Vec<String>,
}

/// Makes the configuration what `desired` says, in one transaction.
///
/// `actor` is written to the audit log, 1 to 256 characters.
///
/// # Errors
///
/// [`StoreError::Manifest`] where it cannot be applied; those of the server and of
/// the connection. Nothing is written then.
pub async fn apply(
    connection: &mut PgConnection,
    desired: &Desired,
    actor: &str,
) -> Result<Plan, StoreError> {
    let applied = apply_with_secrets(connection, desired, &[], actor).await?;
    Ok(applied.plan)
}

/// [`apply`], and in the same transaction gives subscriptions that have no secret the
/// one offered for them, so that none ever takes part without.
///
/// # Errors
///
/// Those of [`apply`].
pub async fn apply_with_secrets(
    connection: &mut PgConnection,
    desired: &Desired,
    secrets: &[NewSecret],
    actor: &str,
) -> Result<Applied, StoreError> {
    let mut transaction = connection.begin().await?;
    sqlx::query!("select pg_advisory_xact_lock($1)", APPLY_LOCK)
        .execute(&mut *transaction)
        .await?;
    let decided = decide::decide(&mut transaction, desired).await?;
    write(&mut transaction, desired, secrets, &decided).await?;
    let mut secrets_issued = Vec::new();
    for secret in secrets {
        if store_if_none(&mut transaction, secret).await? {
            secrets_issued.push(secret.name.clone());
        }
    }
    let plan = decided.plan;
    if !plan.is_empty() || !secrets_issued.is_empty() {
        record(&mut transaction, &plan, &secrets_issued, actor).await?;
    }
    transaction.commit().await?;
    Ok(Applied {
        plan,
        secrets_issued,
    })
}

async fn write(
    connection: &mut PgConnection,
    desired: &Desired,
    secrets: &[NewSecret],
    decided: &decide::Decided,
) -> Result<(), StoreError> {
    for source in &desired.sources {
        if decided.writes(Subject::Source, source.name.as_str()) {
            sources::write(connection, source).await?;
        }
    }
    for subscription in &desired.subscriptions {
        let name = subscription.name.as_str();
        if decided.writes(Subject::Subscription, name) {
            let enables = decided.enables(name);
            let secret = secrets.iter().find(|secret| secret.name == name);
            let id = secret.map(|secret| secret.subscription_id);
            subscriptions::write(connection, subscription, id, enables).await?;
        }
    }
    for change in &decided.plan.changes {
        if change.action == Action::Disable {
            match change.subject {
                Subject::Source => sources::disable(connection, &change.name).await?,
                Subject::Subscription => {
                    subscriptions::disable(connection, &change.name).await?;
                }
            }
        }
    }
    Ok(())
}

/// One line in the audit log, with names and actions and no values.
async fn record(
    connection: &mut PgConnection,
    plan: &Plan,
    secrets_issued: &[String],
    actor: &str,
) -> Result<(), StoreError> {
    let changes: Vec<&Change> = plan
        .changes
        .iter()
        .filter(|change| change.action != Action::Unchanged)
        .collect();
    let detail = serde_json::json!({ "changes": changes, "secrets_issued": secrets_issued });
    sqlx::query!(
        "insert into hookstead.operator_actions (actor, action, target_kind, target_id, detail)
         values ($1, 'manifest.apply', 'manifest', 'manifest', $2)",
        actor,
        detail,
    )
    .execute(connection)
    .await?;
    Ok(())
}
