//! One delivery with all its rounds.

use hookstead_domain::{DeliveryId, EventId, SubscriptionId};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::attempts::{AttemptRecord, attempts_of};
use crate::error::StoreError;

/// One delivery, everything about it but the payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryDetail {
    /// Its id.
    pub delivery_id: DeliveryId,
    /// The event.
    pub event_id: EventId,
    /// The event's type; `None` where the event is gone.
    pub event_type: Option<String>,
    /// The name of the event's source; `None` where it is gone.
    pub source: Option<String>,
    /// When the event arrived.
    #[serde(with = "time::serde::rfc3339::option")]
    pub received_at: Option<OffsetDateTime>,
    /// Whom it is owed to.
    pub subscription_id: SubscriptionId,
    /// The subscription's name; `None` where its row is gone.
    pub subscription: Option<String>,
    /// The kind of its destination.
    pub destination_kind: Option<String>,
    /// Until when the subscription is paused, where it is.
    #[serde(with = "time::serde::rfc3339::option")]
    pub paused_until: Option<OffsetDateTime>,
    /// Since when the subscription is disabled, where it is.
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
    /// Its rounds, oldest first; the last one is where it stands.
    pub rounds: Vec<DeliveryRound>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
}

/// One round of a delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryRound {
    /// Counts re-arms from 1.
    pub round: i32,
    /// The state; of earlier rounds the one they ended in.
    pub state: String,
    /// Why it is in that state, where that needs saying.
    pub state_reason: Option<String>,
    /// Attempts begun in this round.
    pub attempt_count: i32,
    /// Most attempts in this round.
    pub attempt_budget: i32,
    /// When the round began.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it is due; while pending.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_attempt_at: Option<OffsetDateTime>,
    /// When it was put into the queue for that time.
    #[serde(with = "time::serde::rfc3339::option")]
    pub scheduled_at: Option<OffsetDateTime>,
    /// When its last attempt began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_attempt_at: Option<OffsetDateTime>,
    /// Until when its lease runs; while leased.
    #[serde(with = "time::serde::rfc3339::option")]
    pub lease_expires_at: Option<OffsetDateTime>,
    /// The worker that holds the lease.
    pub leased_by: Option<String>,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub terminal_at: Option<OffsetDateTime>,
    /// What the last attempt ended with, where that was an error.
    pub last_error_class: Option<String>,
    /// The retry policy it began with; `None`: the default one.
    pub policy: Option<Value>,
}

/// The row of a round, with the ids that all rounds share.
struct Row {
    event_id: Uuid,
    subscription_id: Uuid,
    round: DeliveryRound,
}

/// One delivery with its rounds and attempts. `None` where there is none of this id.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn show_delivery(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
) -> Result<Option<DeliveryDetail>, StoreError> {
    let rows = rounds_of(connection, delivery_id).await?;
    let Some(last) = rows.last() else {
        return Ok(None);
    };
    let (event_id, subscription_id) = (last.event_id, last.subscription_id);
    let about = sqlx::query!(
        r#"select e.event_type as "event_type?", s.name as "source?", e.received_at as "received_at?",
                  t.name as "subscription?", t.destination ->> 'kind' as destination_kind,
                  t.paused_until as "paused_until?", t.disabled_at as "disabled_at?"
           from (select $1::uuid as event_id, $2::uuid as subscription_id) d
           left join hookstead.events e using (event_id)
           left join hookstead.sources s on s.source_id = e.source_id
           left join hookstead.subscriptions t on t.subscription_id = d.subscription_id"#,
        event_id,
        subscription_id,
    )
    .fetch_one(&mut *connection)
    .await?;
    Ok(Some(DeliveryDetail {
        delivery_id,
        event_id: EventId::from_uuid(event_id),
        event_type: about.event_type,
        source: about.source,
        received_at: about.received_at,
        subscription_id: SubscriptionId::from_uuid(subscription_id),
        subscription: about.subscription,
        destination_kind: about.destination_kind,
        paused_until: about.paused_until,
        disabled_at: about.disabled_at,
        rounds: rows.into_iter().map(|row| row.round).collect(),
        attempts: attempts_of(connection, delivery_id).await?,
    }))
}

async fn rounds_of(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
) -> Result<Vec<Row>, StoreError> {
    let rows = sqlx::query!(
        r#"select event_id as "event_id!", subscription_id as "subscription_id!",
                  round as "round!", state as "state!", state_reason,
                  attempt_count as "attempt_count!", attempt_budget as "attempt_budget!",
                  created_at as "created_at!",
                  case when state = 'pending' then next_attempt_at end as next_attempt_at,
                  scheduled_at, last_attempt_at, lease_expires_at, leased_by,
                  null::timestamptz as terminal_at, last_error_class, policy
           from hookstead.live_deliveries
           where delivery_id = $1
           union all
           select event_id, subscription_id, round, state, state_reason, attempt_count,
                  attempt_budget, created_at, null, null, last_attempt_at, null, null, terminal_at,
                  last_error_class, policy
           from hookstead.done_deliveries
           where delivery_id = $1
           order by 3"#,
        delivery_id.as_uuid(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Row {
            event_id: row.event_id,
            subscription_id: row.subscription_id,
            round: DeliveryRound {
                round: row.round,
                state: row.state,
                state_reason: row.state_reason,
                attempt_count: row.attempt_count,
                attempt_budget: row.attempt_budget,
                created_at: row.created_at,
                next_attempt_at: row.next_attempt_at,
                scheduled_at: row.scheduled_at,
                last_attempt_at: row.last_attempt_at,
                lease_expires_at: row.lease_expires_at,
                leased_by: row.leased_by,
                terminal_at: row.terminal_at,
                last_error_class: row.last_error_class,
                policy: row.policy,
            },
        })
        .collect())
}
