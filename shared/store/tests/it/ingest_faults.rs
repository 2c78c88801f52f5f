//! A failure at any step leaves nothing behind, and the retry stores everything.

use hookstead_store::ingest;

use crate::support::{event, event_id_at, fixture, stored_for};

#[tokio::test]
async fn sto_09_a_failure_at_any_step_leaves_no_trace_and_the_retry_succeeds() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let mut receiver = fixture.receiver().await;
    for table in ["event_keys", "events", "live_deliveries"] {
        fixture
            .run(&format!(
                "alter table hookstead.{table} add constraint injected check (false) not valid"
            ))
            .await;
        let key = format!("evt_{table}");
        let new = event(fixture.source, &key, b"{\"n\":1}");
        let before = fixture.counts().await;
        let error = ingest(&mut receiver, &new).await.unwrap_err();
        assert_eq!(error.constraint(), Some("injected"), "{table}");
        assert_eq!(fixture.counts().await, before, "{table} failed half-way");

        fixture
            .run(&format!(
                "alter table hookstead.{table} drop constraint injected"
            ))
            .await;
        let stored = ingest(&mut receiver, &new).await.unwrap();
        assert_eq!(stored_for(&stored), Some(1), "{table}");
        assert_eq!(
            fixture.counts().await,
            (before.0 + 1, before.1 + 1, before.2 + 1)
        );
    }
}

#[tokio::test]
async fn a_day_without_a_partition_is_refused_whole_and_counts_as_transient() {
    let mut fixture = fixture().await;
    fixture.subscribe("orders").await;
    let mut receiver = fixture.receiver().await;
    let mut new = event(fixture.source, "evt_1", b"{}");
    let far = new.received_at + time::Duration::days(300);
    new.event_id = event_id_at(far);
    new.received_at = far;
    let error = ingest(&mut receiver, &new).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(fixture.counts().await, (0, 0, 0));
}

#[tokio::test]
async fn a_statement_that_was_refused_leaves_the_connection_usable() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    ingest(&mut receiver, &event(fixture.source, "", b"{}"))
        .await
        .unwrap_err();
    ingest(&mut receiver, &event(fixture.source, "evt_1", b"{}"))
        .await
        .unwrap();
    assert_eq!(fixture.counts().await, (1, 1, 0));
}
