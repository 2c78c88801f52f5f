//! Claiming a batch.

use hookstead_domain::{
    BREAKER_THRESHOLD, Delivery, DeliveryId, EventId, LEASE_MARGIN_MS, Lease, LeaseId, RetryPolicy,
    SourceId, State, SubscriptionId, Timestamp,
};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::claimed::{Claimed, ClaimedEvent, ClaimedSubscription, SealedSecret};
use crate::connections::Operation;
use crate::error::StoreError;

/// The statement behind [`claim`], as it is sent. Its head says what goes in.
pub const CLAIM_SQL: &str = include_str!("../../queries/claim.sql");

/// One message's wish, with the lease that would be granted.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRequest {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The round that the message is about.
    pub round: u32,
    /// The number that the attempt would have.
    pub attempt: u32,
    /// Fresh and random. The same request with the same lease may be repeated.
    pub lease_id: LeaseId,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum ClaimAnswer {
    /// The delivery is the caller's until its lease ends.
    Claimed(Box<Claimed>),
    /// Not now: its subscription is paused, at its limit, or has enough under way.
    /// Nothing was counted, and the delivery is due again at this time.
    Postponed(Timestamp),
    /// Nothing to do: the message is stale or repeated, or the subscription is off.
    Stale,
}

/// A batch of requests.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// What is asked for.
    pub requests: &'a [ClaimRequest],
    /// Who asks: 1 to 256 characters.
    pub worker_id: &'a str,
    /// Most deliveries of one subscription that are attempted at once, by all workers
    /// together. Nearly: batches that are claimed at the same moment do not see each other.
    pub max_leases_per_subscription: u32,
    /// Whether the same was asked before, under the same leases, and had no answer: then
    /// it waits for rows that the first call may still hold.
    pub repeated: bool,
}

/// Claims a batch: one statement, one commit. Answers come in the order of the requests.
///
/// # Errors
///
/// Those of the server and of the connection. After a broken connection the same
/// call may be repeated: what it had claimed is claimed.
pub async fn claim(
    connection: &mut PgConnection,
    batch: &Claim<'_>,
) -> Result<Vec<ClaimAnswer>, StoreError> {
    let asked = Columns::of(batch.requests);
    let rows = sqlx::query_file_as!(
        Row,
        "queries/claim.sql",
        &asked.deliveries,
        &asked.rounds,
        &asked.attempts,
        &asked.leases,
        batch.worker_id,
        LEASE_MARGIN_MS as f64,
        i32::try_from(batch.max_leases_per_subscription).unwrap_or(i32::MAX),
        BREAKER_THRESHOLD.cast_signed(),
        asked.first_event,
        asked.last_event,
        batch.repeated,
    )
    .fetch_all(connection)
    .await?;
    let mut answers = Vec::with_capacity(rows.len());
    for row in rows {
        let place = usize::try_from(row.place - 1).ok();
        let request = place.and_then(|place| batch.requests.get(place));
        answers.push(row.answer(present(request, "place")?.lease_id)?);
    }
    Ok(answers)
}

impl Operation for Claim<'_> {
    type Output = Vec<ClaimAnswer>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        claim(connection, self).await
    }
}

/// The requests by column, and the bounds of the ids that their events can have: an
/// event's id begins as its delivery's, and few day partitions need a look.
#[derive(Default)]
struct Columns {
    deliveries: Vec<Uuid>,
    rounds: Vec<i32>,
    attempts: Vec<i32>,
    leases: Vec<Uuid>,
    first_event: Uuid,
    last_event: Uuid,
}

impl Columns {
    fn of(requests: &[ClaimRequest]) -> Self {
        let mut columns = Self::default();
        for request in requests {
            columns.deliveries.push(request.delivery_id.as_uuid());
            // Beyond what the column holds there is no such round or attempt.
            columns.rounds.push(request.round.try_into().unwrap_or(0));
            columns
                .attempts
                .push(request.attempt.try_into().unwrap_or(0));
            columns.leases.push(request.lease_id.as_uuid());
        }
        const TIME_BITS: u128 = u128::MAX << 80;
        let first = columns.deliveries.iter().min();
        let last = columns.deliveries.iter().max();
        let bound = |id: Option<&Uuid>| id.map_or(0, |id| id.as_u128() & TIME_BITS);
        columns.first_event = Uuid::from_u128(bound(first));
        columns.last_event = Uuid::from_u128(bound(last) | !TIME_BITS);
        columns
    }
}

struct Row {
    place: i64,
    postponed_until: Option<Timestamp>,
    delivery_id: Option<Uuid>,
    round: Option<i32>,
    attempt_count: Option<i32>,
    attempt_budget: Option<i32>,
    created_at: Option<Timestamp>,
    deferred_until_limit: Option<Timestamp>,
    lease_expires_at: Option<Timestamp>,
    policy: Option<Value>,
    claimed_at: Timestamp,
    event_id: Option<Uuid>,
    source_id: Option<Uuid>,
    source_name: Option<String>,
    source_kind: Option<String>,
    report_event_type: Option<bool>,
    external_event_id: Option<String>,
    event_type: Option<String>,
    tenant: Option<String>,
    schema_version: Option<String>,
    content_type: Option<String>,
    raw_body: Option<Vec<u8>>,
    occurred_at: Option<Timestamp>,
    received_at: Option<Timestamp>,
    cause_event_id: Option<Uuid>,
    subscription_id: Option<Uuid>,
    subscription_name: Option<String>,
    destination: Option<Value>,
    secret_current: Option<Vec<u8>>,
    secret_current_key: Option<String>,
    secret_previous: Option<Vec<u8>>,
    secret_previous_key: Option<String>,
    previous_until: Option<Timestamp>,
}

impl Row {
    fn answer(mut self, lease_id: LeaseId) -> Result<ClaimAnswer, StoreError> {
        if let Some(until) = self.postponed_until {
            return Ok(ClaimAnswer::Postponed(until));
        }
        let Some(delivery_id) = self.delivery_id else {
            return Ok(ClaimAnswer::Stale);
        };
        let event = self.event()?;
        let lease = Lease {
            lease_id,
            expires_at: present(self.lease_expires_at, "lease_expires_at")?,
        };
        let delivery = Delivery {
            round: count(self.round, "round")?,
            attempt_count: count(self.attempt_count, "attempt_count")?,
            attempt_budget: count(self.attempt_budget, "attempt_budget")?,
            created_at: present(self.created_at, "created_at")?,
            deferred_until_limit: self.deferred_until_limit,
            state: State::Leased(lease),
        };
        Ok(ClaimAnswer::Claimed(Box::new(Claimed {
            delivery_id: DeliveryId::from_uuid(delivery_id),
            delivery,
            lease_id,
            policy: policy(self.policy.take())?,
            claimed_at: self.claimed_at,
            event,
            subscription: self.subscription()?,
        })))
    }

    fn event(&mut self) -> Result<Option<ClaimedEvent>, StoreError> {
        let Some(event_id) = self.event_id else {
            return Ok(None);
        };
        let name: String = present(self.source_name.take(), "source_name")?;
        Ok(Some(ClaimedEvent {
            event_id: EventId::from_uuid(event_id),
            source_id: SourceId::from_uuid(present(self.source_id, "source_id")?),
            source_name: name.parse().map_err(|_| unexpected("source_name"))?,
            source_kind: present(self.source_kind.take(), "source_kind")?,
            report_event_type: present(self.report_event_type, "report_event_type")?,
            external_event_id: present(self.external_event_id.take(), "external_event_id")?,
            event_type: present(self.event_type.take(), "event_type")?,
            tenant: self.tenant.take(),
            schema_version: present(self.schema_version.take(), "schema_version")?,
            content_type: self.content_type.take(),
            raw_body: present(self.raw_body.take(), "raw_body")?,
            occurred_at: self.occurred_at,
            received_at: present(self.received_at, "received_at")?,
            cause_event_id: self.cause_event_id.map(EventId::from_uuid),
        }))
    }

    fn subscription(self) -> Result<ClaimedSubscription, StoreError> {
        let id = present(self.subscription_id, "subscription_id")?;
        Ok(ClaimedSubscription {
            subscription_id: SubscriptionId::from_uuid(id),
            name: present(self.subscription_name, "subscription_name")?,
            destination: present(self.destination, "destination")?,
            secret_current: SealedSecret::of(self.secret_current, self.secret_current_key),
            secret_previous: SealedSecret::of(self.secret_previous, self.secret_previous_key),
            previous_until: self.previous_until,
        })
    }
}

/// The policy of a delivery's row: none of its own stands for the default.
pub(super) fn policy(written: Option<Value>) -> Result<RetryPolicy, StoreError> {
    match written {
        None => Ok(RetryPolicy::default()),
        Some(written) => serde_json::from_value(written).map_err(|_| unexpected("policy")),
    }
}

pub(super) fn count(value: Option<i32>, column: &str) -> Result<u32, StoreError> {
    let value = value.and_then(|value| u32::try_from(value).ok());
    present(value, column)
}

pub(super) fn present<T>(value: Option<T>, column: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| unexpected(column))
}

pub(super) fn unexpected(column: &str) -> StoreError {
    StoreError::Unexpected(format!("column {column}"))
}
