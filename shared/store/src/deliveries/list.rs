//! Lists of deliveries.

use hookstead_domain::{DeliveryId, EventId, StateName, SubscriptionId};
use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{first_id_at, range_around};
use crate::error::StoreError;
use crate::events::DeliverySummary;

/// Most deliveries of one list, as for events.
const MAX_LIST: u16 = 1000;

/// Which deliveries to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryFilter {
    /// Only in one of these states; empty: in any.
    pub states: Vec<StateName>,
    /// Only those owed to this subscription.
    pub subscription: Option<SubscriptionId>,
    /// Only those of this event.
    pub event: Option<EventId>,
    /// Only of events received at or after this time.
    pub since: Option<OffsetDateTime>,
    /// Only older than this one: the last one of the page before.
    pub before: Option<DeliveryId>,
    /// Most deliveries to return, 1 to 1000.
    pub limit: u16,
}

/// One delivery with what it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryListing {
    /// Where it stands.
    #[serde(flatten)]
    pub delivery: DeliverySummary,
    /// The event.
    pub event_id: EventId,
    /// The event's type; `None` where the event is gone.
    pub event_type: Option<String>,
    /// The name of the event's source; `None` where its row is gone.
    pub source: Option<String>,
    /// When this round began.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When its last attempt began.
    #[serde(with = "time::serde::rfc3339::option")]
    pub last_attempt_at: Option<OffsetDateTime>,
}

/// The columns as they come.
struct Row {
    delivery_id: Uuid,
    round: i32,
    event_id: Uuid,
    subscription_id: Uuid,
    subscription: Option<String>,
    state: String,
    state_reason: Option<String>,
    attempt_count: i32,
    attempt_budget: i32,
    next_attempt_at: Option<OffsetDateTime>,
    terminal_at: Option<OffsetDateTime>,
    last_error_class: Option<String>,
    created_at: OffsetDateTime,
    last_attempt_at: Option<OffsetDateTime>,
    event_type: Option<String>,
    source: Option<String>,
}

impl From<Row> for DeliveryListing {
    fn from(row: Row) -> Self {
        Self {
            delivery: DeliverySummary {
                delivery_id: DeliveryId::from_uuid(row.delivery_id),
                round: row.round,
                subscription_id: SubscriptionId::from_uuid(row.subscription_id),
                subscription: row.subscription,
                state: row.state,
                state_reason: row.state_reason,
                attempt_count: row.attempt_count,
                attempt_budget: row.attempt_budget,
                next_attempt_at: row.next_attempt_at,
                terminal_at: row.terminal_at,
                last_error_class: row.last_error_class,
            },
            event_id: EventId::from_uuid(row.event_id),
            event_type: row.event_type,
            source: row.source,
            created_at: row.created_at,
            last_attempt_at: row.last_attempt_at,
        }
    }
}

/// The ids from the first to the last that a filter leaves.
fn bounds(filter: &DeliveryFilter) -> (Uuid, Uuid) {
    let (mut first, mut last) = (Uuid::nil(), Uuid::max());
    if let Some(event) = filter.event {
        (first, last) = range_around(event.as_uuid());
    }
    if let Some(since) = filter.since {
        first = first.max(first_id_at(since));
    }
    if let Some(before) = filter.before {
        // Ids are whole numbers, so "below" is "up to the one before".
        let below = before.as_uuid().as_u128().saturating_sub(1);
        last = last.min(Uuid::from_u128(below));
    }
    (first, last)
}

/// Lists deliveries, each once in its last round, those of the newest events first.
///
/// The queue and the archive are each read from the newest on and only as far as the
/// list reaches, so the size of the archive does not matter unless the filter is rare.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn list_deliveries(
    connection: &mut PgConnection,
    filter: &DeliveryFilter,
) -> Result<Vec<DeliveryListing>, StoreError> {
    let (first, last) = bounds(filter);
    let states: Vec<String> = filter
        .states
        .iter()
        .map(|state| state.as_str().to_owned())
        .collect();
    let rows = sqlx::query_as!(
        Row,
        r#"with page as (
             (select delivery_id, round, event_id, subscription_id, state, state_reason,
                     attempt_count, attempt_budget, next_attempt_at, null::timestamptz as terminal_at,
                     last_error_class, created_at, last_attempt_at
              from hookstead.live_deliveries
              where delivery_id between $1 and $2
                and (cardinality($3::text[]) = 0 or state = any ($3))
                and ($4::uuid is null or subscription_id = $4)
                and ($5::uuid is null or event_id = $5)
              order by delivery_id desc
              limit $6)
             union all
             (select d.delivery_id, d.round, d.event_id, d.subscription_id, d.state, d.state_reason,
                     d.attempt_count, d.attempt_budget, null, d.terminal_at,
                     d.last_error_class, d.created_at, d.last_attempt_at
              from hookstead.done_deliveries d
              where d.delivery_id between $1 and $2
                and (cardinality($3::text[]) = 0 or d.state = any ($3))
                and ($4::uuid is null or d.subscription_id = $4)
                and ($5::uuid is null or d.event_id = $5)
                and not exists (
                    select from hookstead.live_deliveries l where l.delivery_id = d.delivery_id)
                and not exists (
                    select from hookstead.done_deliveries n
                    where n.delivery_id = d.delivery_id and n.round > d.round)
              order by d.delivery_id desc
              limit $6)
             order by delivery_id desc
             limit $6
           )
           select p.delivery_id as "delivery_id!", p.round as "round!", p.event_id as "event_id!",
                  p.subscription_id as "subscription_id!", t.name as "subscription?",
                  p.state as "state!", p.state_reason, p.attempt_count as "attempt_count!",
                  p.attempt_budget as "attempt_budget!", p.next_attempt_at, p.terminal_at,
                  p.last_error_class, p.created_at as "created_at!", p.last_attempt_at,
                  e.event_type as "event_type?", s.name as "source?"
           from page p
           left join hookstead.subscriptions t using (subscription_id)
           left join hookstead.events e using (event_id)
           left join hookstead.sources s on s.source_id = e.source_id
           order by p.delivery_id desc"#,
        first,
        last,
        &states,
        filter.subscription.map(SubscriptionId::as_uuid),
        filter.event.map(EventId::as_uuid),
        i64::from(filter.limit.clamp(1, MAX_LIST)),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(DeliveryListing::from).collect())
}
