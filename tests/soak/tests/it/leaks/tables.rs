//! Everything that stands in the database, column by column.

use sqlx::{AssertSqlSafe, PgConnection};

/// Columns that hold what they were given, because that is what they are for.
pub(super) const BELONG: [&str; 12] = [
    "events.external_event_id",
    "events.headers",
    "events.idempotency_key",
    "events.payload",
    "events.raw_body",
    "event_keys.external_event_id",
    "subscriptions.destination",
    // What a producer names its event and its entity: ids, by which support finds them.
    "event_summaries.external_event_id",
    "live_deliveries.ordering_key",
    "done_deliveries.ordering_key",
    "deliveries.ordering_key",
    // Until it is expanded; the test waits for that.
    "outbox.payload",
];

/// The columns of the tables and views that this connection may read, as
/// `table.column` and all that stands in it. Partitions are read through their parents.
pub(super) async fn columns(connection: &mut PgConnection) -> Vec<(String, String)> {
    let names: Vec<(String, String)> = sqlx::query_as(
        "select c.relname::text, a.attname::text
         from pg_catalog.pg_class c
         join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relnamespace = 'hookstead'::regnamespace and c.relkind in ('r', 'p', 'v')
           and not c.relispartition and has_column_privilege(c.oid, a.attnum, 'select')
         order by 1, 2",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let mut columns = Vec::new();
    for (table, column) in names {
        let sql =
            format!("select string_agg(\"{column}\"::text, E'\\n') from hookstead.\"{table}\"");
        let text: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        columns.push((format!("{table}.{column}"), text.unwrap_or_default()));
    }
    columns
}
