//! Bringing a database to this version's schema. Run once per deploy, never at a
//! function's start.

use sqlx::migrate::Migrator;
use sqlx::{Executor, PgConnection};
use time::Date;

use crate::error::StoreError;

/// Where it is written down which migrations ran.
const HISTORY_TABLE: &str = "hookstead.schema_migrations";

/// Days before today that get partitions: a receiver whose clock is behind, and an
/// event that arrived just before midnight.
const DAYS_BEHIND: i32 = 1;

/// Days from yesterday on that get partitions: fifteen ahead of today. Fourteen are
/// promised, and fewer than seven raise the alarm that maintenance has stopped.
const DAYS_MADE: i32 = 17;

/// Two that migrate one database at once take turns. Any number will do.
const MIGRATE_LOCK: i64 = 0x686f_6f6b_6d69_6772;

/// What [`migrate`] found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Migrations applied by this call.
    pub applied: usize,
    /// Partitions made by this call.
    pub partitions_made: u32,
}

/// Applies the missing migrations, each in a transaction of its own, and makes the
/// partitions of the days ahead. Safe to repeat; two at once take turns.
///
/// The user must be a superuser, or be allowed to create roles and, in this
/// database, schemas.
///
/// # Errors
///
/// [`StoreError::Unsuitable`] for a database that is older than PostgreSQL 15 or
/// does not store text as UTF-8; [`StoreError::Migration`] and
/// [`StoreError::MigrationHistory`]; those of the server and of the connection.
pub async fn migrate(connection: &mut PgConnection) -> Result<Migrated, StoreError> {
    check_server(connection).await?;
    // A migration that cannot get its lock gives up instead of queueing everyone
    // behind itself. The wait for another migrator falls under it, too.
    connection.execute("set lock_timeout = '60s'").await?;
    sqlx::query!("select pg_advisory_lock($1)", MIGRATE_LOCK)
        .execute(&mut *connection)
        .await?;
    let outcome = migrate_locked(connection).await;
    // After a failure the first error is the one to tell; the lock ends with the
    // session at the latest.
    let unlocked = sqlx::query_scalar!("select pg_advisory_unlock($1)", MIGRATE_LOCK)
        .fetch_one(&mut *connection)
        .await;
    let migrated = outcome?;
    unlocked?;
    connection.execute("reset lock_timeout").await?;
    Ok(migrated)
}

async fn migrate_locked(connection: &mut PgConnection) -> Result<Migrated, StoreError> {
    let before = applied(connection).await?;
    // Not on every run: even "if not exists" wants the right to create one.
    let schema = sqlx::query_scalar!("select to_regnamespace('hookstead') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if schema != Some(true) {
        connection.execute("create schema hookstead").await?;
    }
    let mut migrator: Migrator = sqlx::migrate!();
    migrator.dangerous_set_table_name(HISTORY_TABLE);
    // Its own lock would not cover the making of the schema; ours covers both.
    migrator.set_locking(false);
    migrator.run_direct(None, connection, false).await?;
    let after = applied(connection).await?;
    let partitions_made = sqlx::query_scalar!(
        "select hookstead.ensure_partitions((now() at time zone 'utc')::date - $1::integer, $2)",
        DAYS_BEHIND,
        DAYS_MADE,
    )
    .fetch_one(connection)
    .await?;
    Ok(Migrated {
        applied: after.saturating_sub(before),
        partitions_made: unsigned(partitions_made),
    })
}

async fn check_server(connection: &mut PgConnection) -> Result<(), StoreError> {
    let server = sqlx::query!(
        r#"select current_setting('server_version_num')::integer as "version!",
                  current_setting('server_encoding') as "encoding!""#,
    )
    .fetch_one(connection)
    .await?;
    if server.version < 150_000 {
        return Err(StoreError::Unsuitable("PostgreSQL 15 or newer is needed"));
    }
    if server.encoding != "UTF8" {
        return Err(StoreError::Unsuitable("its encoding must be UTF8"));
    }
    Ok(())
}

async fn applied(connection: &mut PgConnection) -> Result<usize, StoreError> {
    // Not compile-checked: the table is made by the migrator.
    let there: Option<bool> = sqlx::query_scalar("select to_regclass($1) is not null")
        .bind(HISTORY_TABLE)
        .fetch_one(&mut *connection)
        .await?;
    if there != Some(true) {
        return Ok(0);
    }
    let count: i64 = sqlx::query_scalar("select count(*) from hookstead.schema_migrations")
        .fetch_one(connection)
        .await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Makes the missing partitions of `days` days (1 to 400) from `from_day`, in UTC,
/// on. Returns how many it made.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn ensure_partitions(
    connection: &mut PgConnection,
    from_day: Date,
    days: u16,
) -> Result<u32, StoreError> {
    let made = sqlx::query_scalar!(
        "select hookstead.ensure_partitions($1, $2)",
        from_day,
        i32::from(days),
    )
    .fetch_one(connection)
    .await?;
    Ok(unsigned(made))
}

/// How many days from `from_day` on, without a gap, have all their partitions.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn partition_days_ahead(
    connection: &mut PgConnection,
    from_day: Date,
) -> Result<u32, StoreError> {
    let days = sqlx::query_scalar!("select hookstead.partition_days_ahead($1)", from_day)
        .fetch_one(connection)
        .await?;
    Ok(unsigned(days))
}

fn unsigned(count: Option<i32>) -> u32 {
    count
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or_default()
}
