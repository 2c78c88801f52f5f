//! A database per test.

use hookstead_testkit::{database, role};
use sqlx::{Connection as _, PgConnection};

async fn exists(connection: &mut PgConnection, name: &str) -> bool {
    sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(name)
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn each_test_has_a_database_of_its_own_with_the_schema_in_it() {
    let (one, two) = (database().await, database().await);
    assert_ne!(one.name(), two.name());
    let mut connection = one.connect().await;
    let there: bool = sqlx::query_scalar("select to_regclass('hookstead.sources') is not null")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(there);
}

#[tokio::test]
async fn a_dropped_database_is_gone_even_with_a_connection_still_open() {
    let kept = database().await;
    let dropped = database().await;
    let name = dropped.name().to_owned();
    let open = dropped.connect().await;
    let mut observer = kept.connect().await;
    assert!(exists(&mut observer, &name).await);
    drop(dropped);
    assert!(!exists(&mut observer, &name).await);
    drop(open);
}

#[tokio::test]
async fn every_role_may_log_in() {
    let database = database().await;
    for role in role::ALL {
        let mut connection = database.connect_as(role).await;
        let user: String = sqlx::query_scalar("select current_user::text")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(user, role);
        connection.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_pool_opens_what_it_needs() {
    let database = database().await;
    let one: i32 = sqlx::query_scalar("select 1")
        .fetch_one(&database.pool())
        .await
        .unwrap();
    assert_eq!(one, 1);
}
