//! Switching subscriptions off and on, as an operator does it: with a line in the
//! audit log in the same transaction.

use hookstead_domain::SubscriptionId;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use super::SubscriptionRecord;
use crate::delivering::{disable_subscription, enable_subscription, rearm_cancelled};
use crate::error::StoreError;

/// Switches it off. `false`: it was off already, and nothing changed.
///
/// `reason` is a code as [`hookstead_domain::ReasonCode`] takes it; `actor` is
/// written to the audit log, 1 to 256 characters.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn switch_subscription_off(
    connection: &mut PgConnection,
    subscription: &SubscriptionRecord,
    reason: &str,
    actor: &str,
) -> Result<bool, StoreError> {
    let mut transaction = connection.begin().await?;
    let id = subscription.subscription_id;
    if !disable_subscription(&mut transaction, id, reason).await? {
        return Ok(false);
    }
    let (detail, name) = (json!({ "reason": reason }), &subscription.name);
    let action = "subscription.disable";
    super::record(&mut transaction, actor, action, name, &detail).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Switches it on. With `rearm`, deliveries that were cancelled because it was off
/// begin anew, and the answer says how many.
///
/// `actor` is written to the audit log, 1 to 256 characters.
///
/// # Errors
///
/// Those of the server and of the connection. What began anew before stays begun;
/// repeating goes on where it stopped.
pub async fn switch_subscription_on(
    connection: &mut PgConnection,
    subscription: &SubscriptionRecord,
    rearm: bool,
    actor: &str,
) -> Result<u64, StoreError> {
    switch_on(connection, subscription, rearm, actor).await?;
    if !rearm {
        return Ok(0);
    }
    let mut rearmed = 0;
    // Each call stays within the time limit of the role, and the last one finds
    // nothing: what began anew is not cancelled any more, unless somebody switches it
    // off again, and then nothing begins.
    loop {
        let begun = rearm_cancelled(connection, subscription.subscription_id).await?;
        if begun == 0 {
            return Ok(rearmed);
        }
        rearmed += begun;
    }
}

async fn switch_on(
    connection: &mut PgConnection,
    subscription: &SubscriptionRecord,
    rearm: bool,
    actor: &str,
) -> Result<(), StoreError> {
    let mut transaction = connection.begin().await?;
    let id: SubscriptionId = subscription.subscription_id;
    enable_subscription(&mut transaction, id).await?;
    let (detail, name) = (json!({ "rearm": rearm }), &subscription.name);
    let action = "subscription.enable";
    super::record(&mut transaction, actor, action, name, &detail).await?;
    transaction.commit().await?;
    Ok(())
}
