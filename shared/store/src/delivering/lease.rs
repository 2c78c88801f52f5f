//! Keeping a lease, and finding those that ran out.

use std::time::Duration;

use hookstead_domain::{
    Delivery, DeliveryId, Lease, LeaseId, RetryPolicy, State, SubscriptionId, Timestamp,
};
use sqlx::PgConnection;

use super::claim::{count, policy, present};
use crate::connections::Operation;
use crate::error::StoreError;

/// Keeps a lease for `length` from now. Never shortens it. `false`: it was lost.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn extend_lease(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
    lease_id: LeaseId,
    length: Duration,
) -> Result<bool, StoreError> {
    let extended = sqlx::query!(
        "update hookstead.live_deliveries
         set lease_expires_at = greatest(lease_expires_at, clock_timestamp() + $3 * interval '1 second')
         where delivery_id = $1 and lease_id = $2 and state = 'leased'",
        delivery_id.as_uuid(),
        lease_id.as_uuid(),
        length.as_secs_f64(),
    )
    .execute(connection)
    .await?;
    Ok(extended.rows_affected() == 1)
}

/// [`extend_lease`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ExtendLease {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The lease.
    pub lease_id: LeaseId,
    /// How long from now.
    pub length: Duration,
}

impl Operation for ExtendLease {
    type Output = bool;

    async fn run(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        extend_lease(connection, self.delivery_id, self.lease_id, self.length).await
    }
}

/// A lease that ran out without a word.
#[derive(Clone, Debug)]
pub struct ExpiredLease {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// Where it stands: leased.
    pub delivery: Delivery,
    /// The lease.
    pub lease_id: LeaseId,
    /// The policy that its round began with.
    pub policy: RetryPolicy,
    /// Its subscription.
    pub subscription_id: SubscriptionId,
    /// When the attempt began.
    pub started_at: Timestamp,
    /// The database's time.
    pub now: Timestamp,
    /// Earlier leases of this round that ran out.
    pub lost_before: u32,
    /// Kind and event type, where the source lets reports name them.
    pub subject: Option<(String, String)>,
}

/// Leases that ran out, the longest ago first. Nothing is taken: whoever ends one
/// names its lease.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn expired_leases(
    connection: &mut PgConnection,
    limit: u32,
) -> Result<Vec<ExpiredLease>, StoreError> {
    let rows = sqlx::query!(
        r#"select
               l.delivery_id, l.round, l.attempt_count, l.attempt_budget, l.created_at,
               l.deferred_until_limit, l.policy, l.subscription_id, l.last_attempt_at,
               l.lease_id as "lease_id!", l.lease_expires_at as "lease_expires_at!",
               clock_timestamp() as "now!",
               (select count(*) from hookstead.attempts a
                where a.delivery_id = l.delivery_id and a.round = l.round
                  and a.error_class = 'worker_lost')::integer as "lost_before!",
               case when s.report_event_type then s.kind end as provider,
               case when s.report_event_type then e.event_type end as event_type
           from (
               select * from hookstead.live_deliveries
               where state = 'leased' and lease_expires_at <= now()
               order by lease_expires_at
               limit $1
           ) l
           left join hookstead.events e on e.event_id = l.event_id
           left join hookstead.sources s on s.source_id = e.source_id
           order by l.lease_expires_at"#,
        i64::from(limit),
    )
    .fetch_all(connection)
    .await?;
    let mut expired = Vec::with_capacity(rows.len());
    for row in rows {
        let lease = Lease {
            lease_id: LeaseId::from_uuid(row.lease_id),
            expires_at: row.lease_expires_at,
        };
        let delivery = Delivery {
            round: count(Some(row.round), "round")?,
            attempt_count: count(Some(row.attempt_count), "attempt_count")?,
            attempt_budget: count(Some(row.attempt_budget), "attempt_budget")?,
            created_at: row.created_at,
            deferred_until_limit: row.deferred_until_limit,
            state: State::Leased(lease),
        };
        expired.push(ExpiredLease {
            delivery_id: DeliveryId::from_uuid(row.delivery_id),
            delivery,
            lease_id: lease.lease_id,
            // One row that cannot be read must not keep the leases of all others.
            policy: policy(row.policy).unwrap_or_default(),
            subscription_id: SubscriptionId::from_uuid(row.subscription_id),
            started_at: present(row.last_attempt_at, "last_attempt_at")?,
            now: row.now,
            lost_before: count(Some(row.lost_before), "lost_before")?,
            subject: row.provider.zip(row.event_type),
        });
    }
    Ok(expired)
}
