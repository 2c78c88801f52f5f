//! Rules every table follows, read from the catalog so that a new one cannot forget them.

use sqlx::AssertSqlSafe;

use crate::support::fixture;

/// Rows of a query that must find nothing.
async fn offenders(sql: &str) -> Vec<String> {
    let mut fixture = fixture().await;
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_all(&mut fixture.admin)
        .await
        .unwrap()
}

const NONE: Vec<String> = Vec::new();

#[tokio::test]
async fn sto_12_every_time_column_is_an_instant() {
    let found = offenders(
        "select table_name || '.' || column_name from information_schema.columns
         where table_schema = 'hookstead'
           and data_type in ('timestamp without time zone', 'date', 'time without time zone',
                             'time with time zone')",
    );
    assert_eq!(found.await, NONE);
    let found = offenders(
        "select table_name || '.' || column_name from information_schema.columns
         where table_schema = 'hookstead' and column_default ilike '%at time zone%'",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn whatever_is_disabled_says_since_when() {
    let found = offenders(
        "select table_name || '.' || column_name from information_schema.columns
         where table_schema = 'hookstead' and data_type = 'boolean'
           and column_name ~ '(enabled|disabled|active)'",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn no_foreign_key_touches_a_partitioned_table() {
    let found = offenders(
        "select conname::text from pg_constraint
         join pg_class on pg_class.oid in (conrelid, confrelid)
         where contype = 'f' and connamespace = 'hookstead'::regnamespace
           and (relkind = 'p' or relispartition)",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn no_partitioned_table_has_a_default_partition() {
    let found = offenders(
        "select relname::text from pg_partitioned_table join pg_class on pg_class.oid = partrelid
         where partdefid <> 0",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn every_column_with_a_closed_set_of_values_has_a_check() {
    let found = offenders(
        "select table_name || '.' || column_name
         from information_schema.columns c
         join information_schema.tables t using (table_schema, table_name)
         where table_schema = 'hookstead' and t.table_type = 'BASE TABLE'
           and column_name in ('state', 'status', 'outcome', 'round', 'attempt_count')
           and not exists (
               select from pg_constraint
               where contype = 'c' and conrelid = format('hookstead.%I', table_name)::regclass
                 and pg_get_constraintdef(oid) ~ ('\\m' || column_name || '\\M'))",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn every_json_column_and_every_text_column_is_bounded_by_a_check() {
    // The migrator makes its own table.
    let found = offenders(
        "select c.relname || '.' || a.attname
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         where c.relnamespace = 'hookstead'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition and c.relname <> 'schema_migrations'
           and a.atttypid in ('text'::regtype, 'json'::regtype, 'jsonb'::regtype)
           and not exists (
               select from pg_constraint
               where contype = 'c' and conrelid = c.oid
                 and pg_get_constraintdef(oid) ~ ('\\m' || a.attname || '\\M'))",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn partitioned_tables_are_split_by_their_id_and_nothing_else_is_split() {
    let mut fixture = fixture().await;
    let keys: Vec<String> = sqlx::query_scalar(
        "select relname || ' ' || pg_get_partkeydef(pg_class.oid) from pg_class
         where relkind = 'p' and relnamespace = 'hookstead'::regnamespace order by 1",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    let expected = [
        "attempts RANGE (delivery_id)",
        "done_deliveries RANGE (delivery_id)",
        "events RANGE (event_id)",
    ];
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn everything_belongs_to_the_owner() {
    let found = offenders(
        "select relname::text from pg_class
         where relnamespace = 'hookstead'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
           and relowner <> 'hookstead_owner'::regrole
         union all
         select proname::text from pg_proc
         where pronamespace = 'hookstead'::regnamespace and proowner <> 'hookstead_owner'::regrole
         union all
         select nspname::text from pg_namespace
         where nspname = 'hookstead' and nspowner <> 'hookstead_owner'::regrole",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn a_function_that_runs_as_the_owner_fixes_its_search_path() {
    let found = offenders(
        "select proname::text from pg_proc
         where pronamespace = 'hookstead'::regnamespace and prosecdef
           and not coalesce(proconfig @> array['search_path=pg_catalog, pg_temp'], false)",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn sto_13_tables_that_change_often_are_vacuumed_early() {
    let mut fixture = fixture().await;
    let options: Vec<String> = sqlx::query_scalar(
        "select unnest(reloptions) from pg_class where oid = 'hookstead.live_deliveries'::regclass",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    for wanted in [
        "fillfactor=80",
        "autovacuum_vacuum_scale_factor=0.0",
        "autovacuum_vacuum_threshold=1000",
        "autovacuum_vacuum_cost_delay=0",
    ] {
        assert!(
            options.iter().any(|option| option == wanted),
            "{wanted} in {options:?}"
        );
    }
    let without = offenders(
        "select relname::text from pg_class
         where oid in ('hookstead.outbox'::regclass, 'hookstead.reports'::regclass,
                       'hookstead.dead_letter_notices'::regclass, 'hookstead.event_keys'::regclass)
           and not exists (select from unnest(reloptions) o where o like 'autovacuum_vacuum_scale%')",
    );
    assert_eq!(without.await, NONE);
}

#[tokio::test]
async fn sto_13_every_role_is_bounded_in_time() {
    let found = offenders(
        "select r.rolname || ' ' || s.name
         from pg_roles r
         cross join (values ('statement_timeout'), ('lock_timeout'),
                            ('idle_in_transaction_session_timeout'), ('search_path')) s (name)
         where r.rolname in ('hookstead_owner', 'hookstead_receiver', 'hookstead_worker',
             'hookstead_relay', 'hookstead_maintenance', 'hookstead_admin',
             'hookstead_publisher', 'hookstead_support')
           and not exists (
               select from pg_db_role_setting c cross join unnest(c.setconfig) v
               where c.setrole = r.oid and c.setdatabase = 0
                 and v like s.name || '=%'
                 and (v <> s.name || '=0' or r.rolname = 'hookstead_owner'))",
    );
    assert_eq!(found.await, NONE);
}

#[tokio::test]
async fn the_ingest_statement_touches_no_partition_but_the_one_it_writes() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let types = "uuid, uuid, text, text, text, text, text, bytea, text, text, text, jsonb, boolean,
                 text, timestamptz, timestamptz, text, uuid, float8";
    fixture
        .run(&format!(
            "prepare ingest ({types}) as {}",
            hookstead_store::INGEST_SQL
        ))
        .await;
    fixture
        .run("set plan_cache_mode = force_generic_plan")
        .await;
    let plan: Vec<String> = sqlx::raw_sql(
        "explain (costs off) execute ingest (gen_random_uuid(), gen_random_uuid(), 'k', null, 't',
         null, '1', '', null, '{}', null, '{}', true, 'v', now(), now(), null, null, 0)",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap()
    .iter()
    .map(|row| sqlx::Row::get::<String, _>(row, 0))
    .collect();
    let plan = plan.join("\n");
    assert!(!plan.contains("events_2"), "{plan}");
    assert!(plan.contains("Conflict Resolution: NOTHING"), "{plan}");
    assert_eq!(plan.matches("on subscriptions s\n").count(), 1, "{plan}");
}
