//! Sources: comparing, writing, disabling.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::decide::{Current, Differences, blame};
use super::{DesiredSource, Subject};
use crate::error::StoreError;

fn texts<T: Clone + Into<String>>(patterns: &[T]) -> Vec<String> {
    patterns.iter().cloned().map(Into::into).collect()
}

pub(super) async fn compare(
    connection: &mut PgConnection,
    desired: &[DesiredSource],
) -> Result<BTreeMap<String, Current>, StoreError> {
    let rows = sqlx::query!(
        "select name, kind, scheme, secret_ref, public_url, tolerance_s, allowed_event_types,
                dedupe_rule, tenant, schema_version, retired_schema_versions, report_event_type,
                disabled_at
         from hookstead.sources
         -- Where our own announcements come from is no entry of a manifest.
         where name <> 'hookstead'",
    )
    .fetch_all(connection)
    .await?;
    let mut current = BTreeMap::new();
    for row in rows {
        let wanted = desired
            .iter()
            .find(|source| source.name.as_str() == row.name);
        let differs = wanted.map(|source| {
            let mut differs = Differences::default();
            differs.note("kind", &row.kind, &source.kind);
            differs.note("scheme", &row.scheme, &source.scheme);
            differs.note("secret_ref", &row.secret_ref, &source.secret_ref);
            differs.note("public_url", &row.public_url, &source.public_url);
            differs.note("tolerance_s", &row.tolerance_s, &tolerance(source));
            let types = texts(&source.allowed_event_types);
            differs.note("allowed_event_types", &row.allowed_event_types, &types);
            differs.note("dedupe_rule", &row.dedupe_rule, &source.dedupe_rule);
            differs.note("tenant", &row.tenant, &source.tenant);
            differs.note(
                "schema_version",
                &row.schema_version,
                &source.schema_version,
            );
            let retired = &source.retired_schema_versions;
            differs.note(
                "retired_schema_versions",
                &row.retired_schema_versions,
                retired,
            );
            let report = &source.report_event_type;
            differs.note("report_event_type", &row.report_event_type, report);
            differs.0
        });
        let found = Current {
            differs,
            disabled: row.disabled_at.is_some(),
            disabled_reason: None,
        };
        current.insert(row.name, found);
    }
    Ok(current)
}

/// Beyond `i32` the value is refused by the range check all the same.
fn tolerance(source: &DesiredSource) -> Option<i32> {
    source
        .tolerance_s
        .map(|s| i32::try_from(s).unwrap_or(i32::MAX))
}

pub(super) async fn write(
    connection: &mut PgConnection,
    source: &DesiredSource,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into hookstead.sources (
             name, kind, scheme, secret_ref, public_url, tolerance_s, allowed_event_types,
             dedupe_rule, tenant, schema_version, retired_schema_versions, report_event_type
         )
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         on conflict (name) do update set
             kind = excluded.kind, scheme = excluded.scheme, secret_ref = excluded.secret_ref,
             public_url = excluded.public_url, tolerance_s = excluded.tolerance_s,
             allowed_event_types = excluded.allowed_event_types,
             dedupe_rule = excluded.dedupe_rule, tenant = excluded.tenant,
             schema_version = excluded.schema_version,
             retired_schema_versions = excluded.retired_schema_versions,
             report_event_type = excluded.report_event_type,
             updated_at = now(), disabled_at = null",
        source.name.as_str(),
        source.kind,
        source.scheme,
        source.secret_ref,
        source.public_url,
        tolerance(source),
        &texts(&source.allowed_event_types),
        source.dedupe_rule,
        source.tenant,
        source.schema_version,
        &source.retired_schema_versions,
        source.report_event_type,
    )
    .execute(connection)
    .await
    .map_err(|error| blame(error, Subject::Source, source.name.as_str()))?;
    Ok(())
}

pub(super) async fn disable(connection: &mut PgConnection, name: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "update hookstead.sources set disabled_at = now(), updated_at = now()
         where name = $1 and disabled_at is null",
        name,
    )
    .execute(connection)
    .await?;
    Ok(())
}
