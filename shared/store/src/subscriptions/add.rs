//! Adding one subscription beside those of the manifest.

use hookstead_domain::SubscriptionId;
use sqlx::{Connection as _, PgConnection};

use super::secret::{NewSecret, store_if_none};
use crate::error::StoreError;
use crate::manifest::{DesiredSubscription, check_subscription, insert_subscription};

/// What came of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there, under this id.
    Yes(SubscriptionId),
    /// Another subscription has the name. Nothing was written.
    NameTaken,
    /// There is no source of the name that it names, or it is disabled. Nothing was written.
    UnknownSource,
}

/// Adds a subscription that no manifest names, with its secret where it has one, and
/// says so in the audit log, all in one transaction.
///
/// `actor` is written to the audit log, 1 to 256 characters.
///
/// # Errors
///
/// [`StoreError::Manifest`] where a value is refused; those of the server and of the
/// connection.
pub async fn add_subscription(
    connection: &mut PgConnection,
    subscription: &DesiredSubscription,
    secret: Option<&NewSecret>,
    actor: &str,
) -> Result<Added, StoreError> {
    check_subscription(connection, subscription).await?;
    let mut transaction = connection.begin().await?;
    if let Some(source) = &subscription.source {
        let is_there = sqlx::query_scalar!(
            r#"select exists (
                   select from hookstead.sources where name = $1 and disabled_at is null
               ) as "is_there!""#,
            source.as_str(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        if !is_there {
            return Ok(Added::UnknownSource);
        }
    }
    let wanted_id = secret.map(|secret| secret.subscription_id);
    let Some(id) = insert_subscription(&mut transaction, subscription, wanted_id).await? else {
        return Ok(Added::NameTaken);
    };
    if let Some(secret) = secret {
        store_if_none(&mut transaction, secret).await?;
    }
    let detail = serde_json::json!({ "secret_issued": secret.is_some() });
    let name = subscription.name.as_str();
    super::record(&mut transaction, actor, "subscription.add", name, &detail).await?;
    transaction.commit().await?;
    Ok(Added::Yes(id))
}
