//! Which deliveries go into the queue now.

use std::time::Duration;

use hookstead_domain::{BREAKER_THRESHOLD, DeliveryId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Due, operation, unsigned};
use crate::error::StoreError;

/// Most deliveries of one subscription that stand in the queue at once: enough for
/// some seconds of work, and no more in front of everybody else's.
const MOST_IN_QUEUE: i64 = 1_000;

/// One row of either statement.
struct Row {
    delivery_id: Uuid,
    round: i32,
    attempt: i32,
}

impl From<Row> for Due {
    fn from(row: Row) -> Self {
        Self {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            round: unsigned(row.round),
            attempt: unsigned(row.attempt),
        }
    }
}

/// Marks at most `limit` due deliveries as put into the queue and gives what their
/// messages ask for. The caller sends the messages, and gives those that the queue
/// refused to [`unschedule`].
///
/// Fair: the first of each subscription, then the second of each, and so on, so a
/// backlog of one never hides what is due of the others. Subscriptions that are paused
/// or disabled are left out. Fewer than `limit` does not mean that nothing is due:
/// with very many subscriptions each gives no more than its share. [`next_due_in`]
/// says whether more is.
///
/// Repeating it after a lost answer marks other deliveries; those of the lost answer
/// come back by [`redispatch_lost`].
///
/// [`next_due_in`]: super::next_due_in
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn dispatch_due(
    connection: &mut PgConnection,
    limit: u16,
) -> Result<Vec<Due>, StoreError> {
    let rows = sqlx::query_file_as!(
        Row,
        "queries/dispatch_due.sql",
        i64::from(limit),
        MOST_IN_QUEUE,
        BREAKER_THRESHOLD.cast_signed(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Due::from).collect())
}

/// [`dispatch_due`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct DispatchDue {
    /// Most deliveries.
    pub limit: u16,
}

operation!(DispatchDue => Vec<Due>, |this, connection| dispatch_due(connection, this.limit));

/// Takes back the mark of deliveries whose messages the queue refused. What was
/// claimed, finished or begun anew meanwhile is left alone. Returns how many it
/// changed.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn unschedule(connection: &mut PgConnection, refused: &[Due]) -> Result<u64, StoreError> {
    let ids: Vec<Uuid> = refused
        .iter()
        .map(|due| due.delivery_id.as_uuid())
        .collect();
    let rounds: Vec<i32> = refused.iter().map(|due| due.round.cast_signed()).collect();
    let attempts: Vec<i32> = refused
        .iter()
        .map(|due| due.attempt.cast_signed())
        .collect();
    let done = sqlx::query!(
        "with refused as materialized (
             select l.delivery_id
             from unnest($1::uuid[], $2::integer[], $3::integer[]) as r (delivery_id, round, attempt)
             cross join lateral (
                 select d.delivery_id, d.round, d.attempt_count, d.state, d.scheduled_at
                 from hookstead.live_deliveries d
                 where d.delivery_id = r.delivery_id
                 limit 1
                 for update skip locked
             ) l
             where l.round = r.round and l.attempt_count = r.attempt - 1
               and l.state = 'pending' and l.scheduled_at is not null
         )
         update hookstead.live_deliveries d
         set scheduled_at = null
         where d.delivery_id = any (array(select r.delivery_id from refused r))",
        &ids,
        &rounds,
        &attempts,
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// [`unschedule`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct Unschedule<'a>(pub &'a [Due]);

operation!(Unschedule<'_> => u64, |this, connection| unschedule(connection, this.0));

/// Marks anew at most `limit` deliveries that have been in the queue for `older_than`
/// and are still not attempted: their messages were lost, or stand far back in a
/// queue that is deep. Their messages are to be sent again, as after [`dispatch_due`].
/// Fair in the same way.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn redispatch_lost(
    connection: &mut PgConnection,
    older_than: Duration,
    limit: u16,
) -> Result<Vec<Due>, StoreError> {
    let rows = sqlx::query_file_as!(
        Row,
        "queries/redispatch_lost.sql",
        i64::from(limit),
        older_than.as_secs_f64(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Due::from).collect())
}

/// [`redispatch_lost`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct RedispatchLost {
    /// Time in the queue after which a message counts as lost.
    pub older_than: Duration,
    /// Most deliveries.
    pub limit: u16,
}

operation!(RedispatchLost => Vec<Due>, |this, connection| {
    redispatch_lost(connection, this.older_than, this.limit)
});
