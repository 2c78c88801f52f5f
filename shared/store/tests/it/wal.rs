//! How much an event costs to write. A count, not a time: it does not depend on the machine.

use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::support::{Fixture, fixture};

/// Most bytes of write-ahead log for an event of 2 KiB with one delivery.
const MAX_WAL_BYTES: u64 = 3_600;

/// The record of the commit, which the statement's own figures leave out.
const COMMIT_BYTES: u64 = 34;

/// A provider's event of 2 KiB: names that repeat, values that do not.
fn body() -> String {
    let mut body =
        r#"{"id":"evt_1","type":"invoice.paid","livemode":false,"data":{"object":{"#.to_owned();
    let mut n: u64 = 0x9e37_79b9_7f4a_7c15;
    while body.len() < 2_048 - 40 {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        body.push_str(&format!("\"field_{:02}\":\"{:012x}\",", n >> 58, n >> 16));
    }
    body.push_str("\"object\":\"invoice\"}}}");
    body
}

/// Bytes of log of one run of the statement, full-page images included.
async fn wal_bytes(fixture: &mut Fixture, n: u32) -> u64 {
    let source = fixture.source;
    let body = body();
    let headers = r#"{"content-type": "application/json; charset=utf-8", "accept": "*/*; q=0.5",
        "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)", "content-length": "2048",
        "x-forwarded-for": "192.0.2.17", "x-forwarded-proto": "https", "stripe-signature":
        "t=1761000000,v1=56fad93f81bd0bc9f004fa78cba1a9e25713c1fe32d8a02d7e56a671eb3836b1"}"#;
    let sql = format!(
        "explain (analyze, wal, costs off, timing off, format json) execute ingest (
         (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
             || '70008000' || lpad(to_hex({n}), 12, '0'))::uuid,
         '{source}', 'evt_{n:016}', null, 'invoice.paid', null, '1', convert_to('{body}', 'UTF8'),
         'application/json; charset=utf-8', '{body}', null, '{headers}', true, 'AWSCURRENT', now(),
         now(), null, null, 0)"
    );
    let row = sqlx::raw_sql(AssertSqlSafe(sql))
        .fetch_one(&mut fixture.admin)
        .await
        .unwrap();
    let explained: Value = sqlx::Row::get(&row, 0);
    let top = &explained[0]["Plan"];
    // The event's insert feeds nothing above it; it runs on its own at the end.
    let parts = top["Plans"].as_array().unwrap();
    let new_event = parts
        .iter()
        .find(|part| part["Subplan Name"] == "CTE new_event")
        .unwrap();
    let bytes = |node: &Value| node["WAL Bytes"].as_u64().unwrap();
    bytes(top) + bytes(new_event) + COMMIT_BYTES
}

#[tokio::test]
async fn an_event_of_2_kib_with_one_delivery_writes_at_most_3600_bytes_of_log() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let types = "uuid, uuid, text, text, text, text, text, bytea, text, text, text, jsonb, boolean,
                 text, timestamptz, timestamptz, text, uuid, float8";
    let prepare = format!(
        "prepare ingest ({types}) as {}",
        hookstead_store::INGEST_SQL
    );
    fixture.run(&prepare).await;
    let mut all = Vec::new();
    for n in 0..101 {
        all.push(wal_bytes(&mut fixture, n).await);
    }
    assert_eq!(fixture.counts().await, (101, 101, 101));
    // The median leaves out full-page images after a checkpoint and page splits.
    all.sort_unstable();
    let median = all[all.len() / 2];
    assert!((2_500..=MAX_WAL_BYTES).contains(&median), "{median} bytes");
}
