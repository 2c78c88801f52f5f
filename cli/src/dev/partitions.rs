//! Partitions of the days ahead, for a `dev` that runs for weeks.

use std::time::Duration;

use hookstead_store::ensure_partitions;
use time::OffsetDateTime;

use crate::database::Database;
use crate::error::{Doing as _, Error};

/// How often it is looked. Far more often than a day begins, because a machine that
/// slept did not count that time.
const EVERY: Duration = Duration::from_secs(600);

/// Days that have partitions, from yesterday on: as many as migrating makes.
const DAYS: u16 = 17;

/// Makes the partitions of new days until it is dropped. Starting has made the first ones.
pub(crate) async fn keep(database: Database) {
    let mut each = tokio::time::interval(EVERY);
    each.tick().await;
    loop {
        each.tick().await;
        if let Err(error) = make(&database, OffsetDateTime::now_utc()).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                error,
                "the partitions of the days ahead could not be made; it is tried again in ten minutes"
            );
        }
    }
}

async fn make(database: &Database, now: OffsetDateTime) -> Result<u32, Error> {
    let yesterday = (now - time::Duration::DAY).date();
    let mut connection = database.connect().await?;
    ensure_partitions(&mut connection, yesterday, DAYS)
        .await
        .doing("cannot make partitions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::SignIn;

    #[tokio::test]
    async fn weeks_after_the_start_there_are_partitions_ahead() {
        let test = hookstead_testkit::database().await;
        let database = Database::new(test.url(), SignIn::SetRole);
        let later = OffsetDateTime::now_utc() + time::Duration::weeks(3);
        let mut connection = test.connect().await;
        let mut ahead = async || {
            let day = later.date();
            hookstead_store::partition_days_ahead(&mut connection, day)
                .await
                .unwrap()
        };
        assert_eq!(ahead().await, 0);
        assert!(make(&database, later).await.unwrap() > 0);
        assert_eq!(ahead().await, u32::from(DAYS) - 1);
        assert_eq!(make(&database, later).await.unwrap(), 0);
    }
}
