//! Pausing subscriptions, and switching them off and on.

use std::time::Duration;

use hookstead_domain::SubscriptionId;
use sqlx::PgConnection;

use super::finish::Failing;

use crate::error::StoreError;

/// Most deliveries that one call of [`rearm_cancelled`] begins anew: a call stays
/// within the limits of its role, and is repeated until it finds none.
const REARM_BATCH: i64 = 1000;

/// Leaves a subscription alone for `pause` from now. A pause never gets shorter.
/// Nothing happens where it has had a success since what was `seen`.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn pause_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
    pause: Duration,
    seen: &Failing,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update hookstead.subscriptions
         set paused_until = greatest(paused_until, now() + $2 * interval '1 second')
         where subscription_id = $1 and first_failure_at = $3",
        subscription.as_uuid(),
        pause.as_secs_f64(),
        seen.first_failure_at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// [`disable_subscription`] for one that only fails. Nothing happens where it has had
/// a success, or was switched on anew, since what was `seen`.
///
/// # Errors
///
/// Those of [`disable_subscription`].
pub async fn disable_failing_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
    reason: &str,
    seen: &Failing,
) -> Result<bool, StoreError> {
    let disabled = sqlx::query_scalar!(
        r#"select hookstead.disable_subscription(s.subscription_id, $2) as "disabled!"
           from hookstead.subscriptions s
           where s.subscription_id = $1 and s.first_failure_at = $3"#,
        subscription.as_uuid(),
        reason,
        seen.first_failure_at,
    )
    .fetch_optional(connection)
    .await?;
    Ok(disabled.unwrap_or(false))
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

/// Switches a subscription on, with a clean record. `false`: it was on.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn enable_subscription(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
) -> Result<bool, StoreError> {
    let enabled = sqlx::query!(
        "update hookstead.subscriptions
         set disabled_at = null, disabled_reason = null, paused_until = null,
             consecutive_failures = 0, first_failure_at = null, updated_at = now()
         where subscription_id = $1 and disabled_at is not null",
        subscription.as_uuid(),
    )
    .execute(connection)
    .await?;
    Ok(enabled.rows_affected() == 1)
}

/// Begins deliveries anew that were cancelled because their subscription was off: up
/// to 1,000 per call, and the answer says how many; repeat until it is 0. Nothing
/// begins while the subscription is off.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn rearm_cancelled(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
) -> Result<u64, StoreError> {
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
    .fetch_all(connection)
    .await?;
    Ok(rows.len() as u64)
}
