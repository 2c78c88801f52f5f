//! Subscriptions: validating, comparing, writing, disabling.

use std::collections::BTreeMap;

use hookstead_domain::{SourceName, SubscriptionId};
use serde_json::Value;
use sqlx::PgConnection;

use super::decide::{Current, Differences, blame};
use super::{DesiredSubscription, ManifestError, REMOVED, Subject};
use crate::error::StoreError;

/// The entries that a manifest rules over.
const MANIFEST: &str = "manifest";

fn types(subscription: &DesiredSubscription) -> Vec<String> {
    subscription
        .event_types
        .iter()
        .cloned()
        .map(Into::into)
        .collect()
}

/// Asks the server what only it can say: whether the filter is a path it can
/// evaluate and whether the policy is one.
pub(crate) async fn check(
    connection: &mut PgConnection,
    subscription: &DesiredSubscription,
) -> Result<(), StoreError> {
    let refuse = |code| {
        StoreError::Manifest(ManifestError {
            code,
            subject: Subject::Subscription,
            name: subscription.name.to_string(),
            constraint: None,
        })
    };
    if let Some(filter) = &subscription.payload_filter {
        let text = canonical(connection, filter)
            .await
            .map_err(|error| match error.sqlstate() {
                // Any complaint about the text itself: syntax, escapes, a regular expression.
                Some(state) if state.starts_with("22") || state.starts_with("42") => {
                    refuse("invalid_filter")
                }
                _ => error,
            })?;
        // Nobody gives variables a value, so such a filter would silently match nothing.
        if names_a_variable(&text) {
            return Err(refuse("invalid_filter"));
        }
    }
    if let Some(policy) = &subscription.retry_policy {
        let fits = sqlx::query_scalar!("select hookstead.is_retry_policy($1)", policy)
            .fetch_one(connection)
            .await?;
        if fits != Some(true) {
            return Err(refuse("invalid_retry_policy"));
        }
    }
    Ok(())
}

/// A path as the server writes it, so that spelling alone is no difference.
async fn canonical(connection: &mut PgConnection, filter: &str) -> Result<String, StoreError> {
    let text = sqlx::query_scalar!(r#"select $1::text::jsonpath::text as "path!""#, filter)
        .fetch_one(connection)
        .await?;
    Ok(text)
}

/// Whether a path, as the server writes it, names a variable: `$"name"` outside of texts.
fn names_a_variable(path: &str) -> bool {
    let mut in_text = false;
    let mut before = None;
    let mut characters = path.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' if !in_text && before == Some('$') => return true,
            '"' => in_text = !in_text,
            '\\' if in_text => {
                characters.next();
            }
            _ => {}
        }
        before = Some(c);
    }
    false
}

pub(super) async fn compare(
    connection: &mut PgConnection,
    desired: &[DesiredSubscription],
) -> Result<BTreeMap<String, Current>, StoreError> {
    let default_policy =
        sqlx::query_scalar!(r#"select hookstead.default_retry_policy() as "policy!: Value""#)
            .fetch_one(&mut *connection)
            .await?;
    let rows = sqlx::query!(
        r#"select t.name, s.name as "source?", t.tenant, t.event_types,
                  t.payload_filter::text as payload_filter, t.destination, t.retry_policy,
                  t.schema_version, t.rate_limit_per_s, t.disabled_at, t.disabled_reason,
                  t.managed_by
           from hookstead.subscriptions t
           left join hookstead.sources s using (source_id)"#,
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut current = BTreeMap::new();
    for row in rows {
        let wanted = desired.iter().find(|one| one.name.as_str() == row.name);
        let differs = match wanted {
            // Somebody else's entry until the manifest names it.
            None if row.managed_by != MANIFEST => continue,
            None => None,
            Some(one) => {
                let filter = match &one.payload_filter {
                    Some(filter) => Some(canonical(connection, filter).await?),
                    None => None,
                };
                let mut differs = Differences::default();
                let source = one.source.as_ref().map(ToString::to_string);
                differs.note("source", &row.source, &source);
                differs.note("tenant", &row.tenant, &one.tenant);
                differs.note("event_types", &row.event_types, &types(one));
                differs.note("payload_filter", &row.payload_filter, &filter);
                differs.note("destination", &row.destination, &one.destination);
                let policy = one.retry_policy.as_ref().unwrap_or(&default_policy);
                differs.note("retry_policy", &row.retry_policy, policy);
                differs.note("schema_version", &row.schema_version, &one.schema_version);
                differs.note("rate_limit_per_s", &row.rate_limit_per_s, &rate(one));
                differs.note("managed_by", row.managed_by.as_str(), MANIFEST);
                Some(differs.0)
            }
        };
        let found = Current {
            differs,
            disabled: row.disabled_at.is_some(),
            disabled_reason: row.disabled_reason,
        };
        current.insert(row.name, found);
    }
    Ok(current)
}

/// Beyond `i32` the value is refused by the range check all the same.
fn rate(subscription: &DesiredSubscription) -> Option<i32> {
    subscription
        .rate_limit_per_s
        .map(|rate| i32::try_from(rate).unwrap_or(i32::MAX))
}

/// Writes the row. Its source's row is already written. `new_id` is the id of a new row,
/// where its secret is sealed for one.
pub(super) async fn write(
    connection: &mut PgConnection,
    subscription: &DesiredSubscription,
    new_id: Option<SubscriptionId>,
    enables: bool,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into hookstead.subscriptions (
             name, source_id, tenant, event_types, payload_filter, destination, retry_policy,
             schema_version, rate_limit_per_s, subscription_id
         )
         values (
             $1, (select source_id from hookstead.sources where name = $2), $3, $4,
             $5::text::jsonpath, $6, coalesce($7, hookstead.default_retry_policy()), $8, $9,
             coalesce($11, gen_random_uuid())
         )
         on conflict (name) do update set
             source_id = excluded.source_id, tenant = excluded.tenant,
             event_types = excluded.event_types, payload_filter = excluded.payload_filter,
             destination = excluded.destination, retry_policy = excluded.retry_policy,
             schema_version = excluded.schema_version,
             rate_limit_per_s = excluded.rate_limit_per_s, managed_by = excluded.managed_by,
             updated_at = now(),
             disabled_at = case when $10 then null else subscriptions.disabled_at end,
             disabled_reason = case when $10 then null else subscriptions.disabled_reason end",
        subscription.name.as_str(),
        subscription.source.as_ref().map(SourceName::as_str),
        subscription.tenant,
        &types(subscription),
        subscription.payload_filter,
        subscription.destination,
        subscription.retry_policy,
        subscription.schema_version,
        rate(subscription),
        enables,
        new_id.map(SubscriptionId::as_uuid),
    )
    .execute(connection)
    .await
    .map_err(|error| blame(error, Subject::Subscription, subscription.name.as_str()))?;
    Ok(())
}

/// Adds the row of a command, under this id where one is given. `None`: the name is taken.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    subscription: &DesiredSubscription,
    id: Option<SubscriptionId>,
) -> Result<Option<SubscriptionId>, StoreError> {
    let id = sqlx::query_scalar!(
        "insert into hookstead.subscriptions (
             name, source_id, tenant, event_types, payload_filter, destination, retry_policy,
             schema_version, rate_limit_per_s, subscription_id, managed_by
         )
         values (
             $1, (select source_id from hookstead.sources where name = $2), $3, $4,
             $5::text::jsonpath, $6, coalesce($7, hookstead.default_retry_policy()), $8, $9,
             coalesce($10, gen_random_uuid()), 'command'
         )
         on conflict (name) do nothing
         returning subscription_id",
        subscription.name.as_str(),
        subscription.source.as_ref().map(SourceName::as_str),
        subscription.tenant,
        &types(subscription),
        subscription.payload_filter,
        subscription.destination,
        subscription.retry_policy,
        subscription.schema_version,
        rate(subscription),
        id.map(SubscriptionId::as_uuid),
    )
    .fetch_optional(connection)
    .await
    .map_err(|error| blame(error, Subject::Subscription, subscription.name.as_str()))?;
    Ok(id.map(SubscriptionId::from_uuid))
}

pub(super) async fn disable(connection: &mut PgConnection, name: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "update hookstead.subscriptions
         set disabled_at = now(), disabled_reason = $2, updated_at = now()
         where name = $1 and disabled_at is null",
        name,
        REMOVED,
    )
    .execute(connection)
    .await?;
    Ok(())
}
