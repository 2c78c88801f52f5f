//! Pausing subscriptions, and switching them off and on.

use std::time::Duration;

use hookstead_domain::SubscriptionId;
use sqlx::{Connection as _, PgConnection};

use crate::error::StoreError;

/// Most deliveries that one call of [`enable_subscription`] begins anew: a call stays
/// within the limits of its role, and is repeated until it finds none.
const REARM_BATCH: i64 = 1000;

/// Leaves a subscription alone for `pause` from now. A pause never gets shorter.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn pause_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
    pause: Duration,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update hookstead.subscriptions
         set paused_until = greatest(paused_until, now() + $2 * interval '1 second')
         where subscription_id = $1",
        subscription.as_uuid(),
        pause.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Switches a subscription off: nothing of it is claimed from the commit on, what
/// waits is cancelled by the relay, and an event of ours says so. `false`: it was
/// off already, and nothing changed.
///
/// # Errors
///
/// Those of the server and of the connection; `reason` is a code as
/// [`hookstead_domain::ReasonCode`] takes it.
pub async fn disable_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
    reason: &str,
) -> Result<bool, StoreError> {
    let disabled = sqlx::query_scalar!(
        r#"select hookstead.disable_subscription($1, $2) as "disabled!""#,
        subscription.as_uuid(),
        reason,
    )
    .fetch_one(connection)
    .await?;
    Ok(disabled)
}

/// Switches a subscription on, with a clean record. With `rearm`, deliveries that
/// were cancelled because it was off begin anew: up to 1,000 per call, and the
/// answer says how many; repeat until it is 0.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn enable_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
    rearm: bool,
) -> Result<u64, StoreError> {
    let mut transaction = connection.begin().await?;
    sqlx::query!(
        "update hookstead.subscriptions
         set disabled_at = null, disabled_reason = null, paused_until = null,
             consecutive_failures = 0, first_failure_at = null, updated_at = now()
         where subscription_id = $1 and disabled_at is not null",
        subscription.as_uuid(),
    )
    .execute(&mut *transaction)
    .await?;
    let mut begun = 0;
    if rearm {
        let rows = sqlx::query_scalar!(
            r#"select r.delivery_id
               from (
                   select array_agg(d.delivery_id) as ids, array_agg(d.round) as rounds
                   from (
                       select d.delivery_id, d.round
                       from hookstead.done_deliveries d
                       where d.subscription_id = $1 and d.state = 'cancelled'
                         and d.state_reason = 'subscription_disabled'
                         and not exists (
                             select from hookstead.live_deliveries l
                             where l.delivery_id = d.delivery_id)
                         and not exists (
                             select from hookstead.done_deliveries n
                             where n.delivery_id = d.delivery_id and n.round > d.round)
                       order by d.terminal_at
                       limit $2
                   ) d
               ) d
               cross join lateral hookstead.rearm_deliveries(d.ids, d.rounds, '{cancelled}') r"#,
            subscription.as_uuid(),
            REARM_BATCH,
        )
        .fetch_all(&mut *transaction)
        .await?;
        begun = rows.len() as u64;
    }
    transaction.commit().await?;
    Ok(begun)
}
