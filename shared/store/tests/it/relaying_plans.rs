//! What the relay's statements read when the statistics are those of an empty queue.
//!
//! That is the usual case: the queue was empty when it was last analysed, and then a
//! destination went down.

use sqlx::AssertSqlSafe;

use crate::relaying_support::relaying;

const DISPATCH: &str = include_str!("../../queries/dispatch_due.sql");
const REDISPATCH: &str = include_str!("../../queries/redispatch_lost.sql");
const POSTPONE: &str = include_str!("../../queries/postpone_paused.sql");

#[tokio::test]
async fn no_statement_of_the_relay_reads_the_whole_queue_for_a_few_deliveries() {
    let mut relaying = relaying().await;
    let orders = relaying.fixture.subscribe("orders").await;
    relaying.owe(orders, 20_000, 3600).await;
    for sql in [
        "alter table hookstead.live_deliveries set (autovacuum_enabled = off)",
        "update hookstead.live_deliveries set scheduled_at = now() - interval '1 h'
         where random() < 0.5",
        "vacuum hookstead.live_deliveries",
        "update pg_class set reltuples = 1
         where relnamespace = 'hookstead'::regnamespace and relname like 'live_deliveries%'",
    ] {
        relaying.fixture.run(sql).await;
    }
    for (sql, arguments) in [
        (DISPATCH, "50, 1000, 10"),
        (REDISPATCH, "50, 120"),
        (POSTPONE, "50, 10"),
    ] {
        let sql = sql.replace('!', "");
        relaying.fixture.run("deallocate all").await;
        relaying
            .fixture
            .run(&format!("prepare statement as {sql}"))
            .await;
        let buffers = buffers(&mut relaying.fixture.admin, arguments).await;
        // 20,000 rows are some 400 pages; 50 of them, each looked up, locked and
        // changed in four indexes, touch about 2,000. Reading all for each is 20,000.
        assert!(buffers < 4_000, "{buffers} pages:\n{sql}");
    }
}

/// The pages that one run touches.
async fn buffers(admin: &mut sqlx::PgConnection, arguments: &str) -> i64 {
    let sql = format!(
        "explain (analyze, buffers, format json, timing off) execute statement ({arguments})"
    );
    let row = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_one(admin)
        .await
        .unwrap();
    let explained: serde_json::Value = sqlx::Row::get(&row, 0);
    let plan = &explained[0]["Plan"];
    let of = |key: &str| plan[key].as_i64().unwrap();
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}
