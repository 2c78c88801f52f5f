//! The signing secrets of subscriptions, sealed. Nothing here can open them.

use std::fmt;

use hookstead_domain::SubscriptionId;
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::error::StoreError;

/// A secret for a subscription that has none. It is sealed for this very id.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSecret {
    /// The subscription's name.
    pub name: String,
    /// Its id: the one it has, or the one it is to get where it is new.
    pub subscription_id: SubscriptionId,
    /// The sealed secret.
    pub sealed: Vec<u8>,
    /// The key it is sealed under.
    pub key_id: String,
}

/// What a subscription signs with, sealed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SealedSecrets {
    /// The secret and the id of the key it is sealed under.
    pub current: Option<(Vec<u8>, String)>,
    /// The one before, where its time is not over.
    pub previous: Option<(Vec<u8>, String)>,
}

/// A subscription that is to have a secret and has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secretless {
    /// Its name.
    pub name: String,
    /// Its id; `None` where it is not there yet.
    pub subscription_id: Option<SubscriptionId>,
}

impl fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSecret")
            .field("name", &self.name)
            .field("subscription_id", &self.subscription_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SealedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedSecrets").finish_non_exhaustive()
    }
}

/// Which of these names have no secret, in the order of the names given.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn subscriptions_without_secret(
    connection: &mut PgConnection,
    names: &[String],
) -> Result<Vec<Secretless>, StoreError> {
    let rows = sqlx::query!(
        r#"select n.name as "name!", t.subscription_id as "subscription_id?"
           from unnest($1::text[]) with ordinality as n (name, place)
           left join hookstead.subscriptions t using (name)
           where t.secret_current is null
           order by n.place"#,
        names,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Secretless {
            name: row.name,
            subscription_id: row.subscription_id.map(SubscriptionId::from_uuid),
        })
        .collect())
}

/// Gives a subscription a secret if it has none. `false`: it has one, or another id
/// than the secret is sealed for; nothing changed.
pub(crate) async fn store_if_none(
    connection: &mut PgConnection,
    secret: &NewSecret,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update hookstead.subscriptions
         set secret_current = $3, secret_current_key = $4, updated_at = now()
         where name = $1 and subscription_id = $2 and secret_current is null",
        secret.name,
        secret.subscription_id.as_uuid(),
        secret.sealed,
        secret.key_id,
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// What the subscription signs with now. Empty where there is no such subscription.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn sealed_secrets(
    connection: &mut PgConnection,
    subscription: SubscriptionId,
) -> Result<SealedSecrets, StoreError> {
    let row = sqlx::query!(
        r#"select secret_current, secret_current_key, secret_previous, secret_previous_key,
                  previous_until, now() as "now!"
           from hookstead.subscriptions
           where subscription_id = $1"#,
        subscription.as_uuid(),
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(SealedSecrets::default());
    };
    let now: OffsetDateTime = row.now;
    let is_live = row.previous_until.is_some_and(|until| until > now);
    Ok(SealedSecrets {
        current: row.secret_current.zip(row.secret_current_key),
        previous: row
            .secret_previous
            .zip(row.secret_previous_key)
            .filter(|_| is_live),
    })
}
