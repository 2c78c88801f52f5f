//! Dead letters that are still to be announced.

use std::time::Duration;

use hookstead_domain::{DeadLetterNotice, DeadLetterReason, DeliveryId, EventId, SubscriptionId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{operation, unsigned};
use crate::error::StoreError;

/// Takes at most `limit` notices for the time `taken_for`: until then no other relay
/// gets them. The caller sends and acknowledges them, or releases those that could
/// not be sent; what it does neither of comes back by itself.
///
/// A notice whose reason this version does not know stays where it is, for one that does.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn take_notices(
    connection: &mut PgConnection,
    limit: u16,
    taken_for: Duration,
) -> Result<Vec<DeadLetterNotice>, StoreError> {
    let known: Vec<String> = DeadLetterReason::ALL
        .iter()
        .map(|reason| reason.as_str().to_owned())
        .collect();
    let rows = sqlx::query!(
        "with chosen as materialized (
             select n.delivery_id, n.round
             from hookstead.dead_letter_notices n
             where (n.taken_until is null or n.taken_until <= now()) and n.state_reason = any ($3::text[])
             limit $1::bigint
             for update skip locked
         ),
         taken as (
             update hookstead.dead_letter_notices n
             set taken_until = now() + $2::float8 * interval '1 second'
             from chosen c
             where n.delivery_id = c.delivery_id and n.round = c.round
             returning n.delivery_id, n.round, n.event_id, n.subscription_id, n.state_reason,
                 n.attempt_count, n.created_at
         )
         select * from taken order by created_at, delivery_id",
        i64::from(limit),
        taken_for.as_secs_f64(),
        &known,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Some(DeadLetterNotice {
                delivery_id: DeliveryId::from_uuid(row.delivery_id),
                round: unsigned(row.round),
                attempt_count: unsigned(row.attempt_count),
                event_id: EventId::from_uuid(row.event_id),
                subscription_id: SubscriptionId::from_uuid(row.subscription_id),
                state_reason: DeadLetterReason::from_code(&row.state_reason)?,
            })
        })
        .collect())
}

/// [`take_notices`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct TakeNotices {
    /// Most notices.
    pub limit: u16,
    /// For how long they are the caller's.
    pub taken_for: Duration,
}

operation!(TakeNotices => Vec<DeadLetterNotice>, |this, connection| {
    take_notices(connection, this.limit, this.taken_for)
});

/// Deletes notices that were sent. Returns how many were still there.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn acknowledge_notices(
    connection: &mut PgConnection,
    sent: &[DeadLetterNotice],
) -> Result<u64, StoreError> {
    let (ids, rounds) = keys(sent);
    let done = sqlx::query!(
        "delete from hookstead.dead_letter_notices n
         using unnest($1::uuid[], $2::integer[]) as sent (delivery_id, round)
         where n.delivery_id = sent.delivery_id and n.round = sent.round",
        &ids,
        &rounds,
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// [`acknowledge_notices`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct AcknowledgeNotices<'a>(pub &'a [DeadLetterNotice]);

operation!(AcknowledgeNotices<'_> => u64, |this, connection| {
    acknowledge_notices(connection, this.0)
});

/// Gives back notices that could not be sent: the next relay may take them at once.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn release_notices(
    connection: &mut PgConnection,
    unsent: &[DeadLetterNotice],
) -> Result<u64, StoreError> {
    let (ids, rounds) = keys(unsent);
    let done = sqlx::query!(
        "update hookstead.dead_letter_notices n
         set taken_until = null
         from unnest($1::uuid[], $2::integer[]) as unsent (delivery_id, round)
         where n.delivery_id = unsent.delivery_id and n.round = unsent.round
           and n.taken_until is not null",
        &ids,
        &rounds,
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// [`release_notices`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseNotices<'a>(pub &'a [DeadLetterNotice]);

operation!(ReleaseNotices<'_> => u64, |this, connection| release_notices(connection, this.0));

fn keys(notices: &[DeadLetterNotice]) -> (Vec<Uuid>, Vec<i32>) {
    notices
        .iter()
        .map(|notice| (notice.delivery_id.as_uuid(), notice.round.cast_signed()))
        .unzip()
}
