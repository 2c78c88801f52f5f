//! Migrating.

use hookstead_store::{Migrated, migrate, partition_days_ahead};
use time::OffsetDateTime;

use crate::support::fixture;

#[tokio::test]
async fn migrating_again_changes_nothing() {
    let database = hookstead_testkit::database().await;
    let mut admin = database.connect().await;
    let again = migrate(&mut admin).await.unwrap();
    let nothing = Migrated {
        applied: 0,
        partitions_made: 0,
    };
    assert_eq!(again, nothing);
}

#[tokio::test]
async fn two_that_migrate_an_empty_schema_at_once_take_turns() {
    let database = hookstead_testkit::database().await;
    let mut first = database.connect().await;
    let mut second = database.connect().await;
    crate::support::run(&mut first, "drop schema hookstead cascade").await;
    let (one, other) = tokio::join!(migrate(&mut first), migrate(&mut second));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.partitions_made + other.partitions_made, 3 * 17);
    let ahead = partition_days_ahead(&mut first, OffsetDateTime::now_utc().date())
        .await
        .unwrap();
    assert!(ahead >= 14, "{ahead} days");
}

#[tokio::test]
async fn a_history_of_another_version_is_refused() {
    let mut fixture = fixture().await;
    fixture
        .run("update hookstead.schema_migrations set checksum = '\\x00' where version = 2")
        .await;
    let error = migrate(&mut fixture.admin).await.unwrap_err();
    assert!(
        matches!(error, hookstead_store::StoreError::MigrationHistory(_)),
        "{error}"
    );
}
