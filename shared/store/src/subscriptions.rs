//! Subscriptions one by one: looking, adding, their secrets, switching off and on.

mod add;
mod list;
mod secret;
mod switch;

pub use add::{Added, add_subscription};
pub use list::{SubscriptionRecord, list_subscriptions, subscription_by_name};
pub use secret::{
    NewSecret, SealedSecrets, Secretless, sealed_secrets, subscriptions_without_secret,
};
pub use switch::{switch_subscription_off, switch_subscription_on};

pub(crate) use secret::store_if_none;

use serde_json::Value;
use sqlx::PgConnection;

use crate::error::StoreError;

/// A line in the audit log about one subscription, with no value of its row.
async fn record(
    connection: &mut PgConnection,
    actor: &str,
    action: &str,
    name: &str,
    detail: &Value,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into hookstead.operator_actions (actor, action, target_kind, target_id, detail)
         values ($1, $2, 'subscription', $3, $4)",
        actor,
        action,
        name,
        detail,
    )
    .execute(connection)
    .await?;
    Ok(())
}
