//! Events, and the deliveries that they are owed as: the same ones for both sides.

use std::path::PathBuf;

use hookstead_domain::{
    AttemptReason, AttemptRequest, DeliveryId, EventId, LeaseId, QueueMessage, ReportId,
    RetryPolicy,
};
use hookstead_store::delivering::ClaimRequest;
use serde_json::{Value, json};
use sqlx::Connection as _;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::{Builder, Uuid};

use crate::sample;
use crate::server::{Server, Subscribed};

/// Deliveries of one claim: what one receive gives at most.
pub(crate) const BATCH: usize = 10;

/// Events of one millisecond: four to ten thousand a second, as they are then worked off.
const EVENTS_PER_MS: usize = 5;

/// Events with one delivery each, and these cut into batches.
pub(crate) struct Stock {
    subscribed: Subscribed,
    events: Vec<Uuid>,
    deliveries: Vec<Uuid>,
    pub(crate) batches: Vec<Vec<ClaimRequest>>,
}

fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

impl Stock {
    /// So many, from an hour ago on. Nothing is stored yet but the batches, in a table
    /// that pgbench reads by number.
    pub(crate) async fn new(
        server: &Server,
        subscribed: Subscribed,
        count: usize,
    ) -> anyhow::Result<Self> {
        let subscription =
            hookstead_domain::SubscriptionId::from_uuid(subscribed.sealed.subscription_id);
        let begin = OffsetDateTime::now_utc() - time::Duration::HOUR;
        let begin_ms = u64::try_from(begin.unix_timestamp_nanos() / 1_000_000)?;
        let mut stock = Self {
            subscribed,
            events: Vec::with_capacity(count),
            deliveries: Vec::with_capacity(count),
            batches: Vec::new(),
        };
        for n in 0..count {
            let ms = begin_ms + u64::try_from(n / EVENTS_PER_MS)?;
            let event = EventId::new(ms, random()?);
            stock.events.push(event.as_uuid());
            let delivery = DeliveryId::derive(event, subscription);
            stock.deliveries.push(delivery.as_uuid());
        }
        for batch in stock.deliveries.chunks_exact(BATCH) {
            let requests: anyhow::Result<Vec<_>> = batch.iter().map(|id| request(*id)).collect();
            stock.batches.push(requests?);
        }
        stock.store_batches(server).await?;
        Ok(stock)
    }

    /// What pgbench sends in place of parameters that it cannot compute: the same values
    /// as the store sends, with the ends of the attempts as the same text.
    async fn store_batches(&self, server: &Server) -> anyhow::Result<()> {
        server
            .execute(
                "create schema bench;
                 create table bench.batches (
                     number integer primary key, deliveries uuid[], rounds integer[],
                     attempts integer[], leases uuid[], finishes text);
                 alter table bench.batches alter column finishes set storage external;
                 grant usage on schema bench to hookstead_worker;
                 grant select on bench.batches to hookstead_worker",
            )
            .await?;
        let mut connection = server.superuser().await?;
        let mut transaction = connection.begin().await?;
        for (number, batch) in self.batches.iter().enumerate() {
            let deliveries: Vec<Uuid> = batch.iter().map(|one| one.delivery_id.as_uuid()).collect();
            let leases: Vec<Uuid> = batch.iter().map(|one| one.lease_id.as_uuid()).collect();
            let finishes: anyhow::Result<Vec<Value>> = batch.iter().map(finish).collect();
            sqlx::query(
                "insert into bench.batches
                 values ($1, $2, array_fill(1, array[$3]), array_fill(1, array[$3]), $4, $5)",
            )
            .bind(i32::try_from(number)?)
            .bind(&deliveries)
            .bind(i32::try_from(batch.len())?)
            .bind(leases)
            .bind(serde_json::to_string(&finishes?)?)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        server.execute("vacuum analyze bench.batches").await
    }

    /// Stores the events.
    pub(crate) async fn store(&self, server: &Server) -> anyhow::Result<()> {
        server.empty().await?;
        let body = sample::body(0);
        let headers: serde_json::Map<String, Value> = sample::headers()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        sqlx::query(
            "insert into hookstead.events (
                 event_id, source_id, received_at, occurred_at, signature_verified, verified_with,
                 external_event_id, event_type, schema_version, content_type, headers, payload,
                 raw_body)
             select e.id, $2, now(), now(), true, 'AWSCURRENT', e.id::text, $3, '1', $4, $5,
                 $6::text::jsonb, $7
             from unnest($1::uuid[]) e (id)",
        )
        .bind(&self.events)
        .bind(self.subscribed.source_id)
        .bind(sample::EVENT_TYPE)
        .bind(sample::CONTENT_TYPE)
        .bind(Value::Object(headers))
        .bind(&body)
        .bind(body.as_bytes())
        .execute(&mut server.superuser().await?)
        .await?;
        server.execute("vacuum analyze hookstead.events").await
    }

    /// Owes every event once, as if the relay had just put all of them into the queue.
    pub(crate) async fn owe(&self, server: &Server) -> anyhow::Result<()> {
        server
            .execute(
                "truncate hookstead.live_deliveries, hookstead.done_deliveries, hookstead.attempts",
            )
            .await?;
        sqlx::query(
            "insert into hookstead.live_deliveries (
                 delivery_id, event_id, subscription_id, next_attempt_at, scheduled_at,
                 attempt_budget)
             select o.delivery_id, o.event_id, $3, now(), now(), $4
             from unnest($1::uuid[], $2::uuid[]) o (delivery_id, event_id)",
        )
        .bind(&self.deliveries)
        .bind(&self.events)
        .bind(self.subscribed.sealed.subscription_id)
        .bind(i32::try_from(RetryPolicy::default().attempt_budget())?)
        .execute(&mut server.superuser().await?)
        .await?;
        server
            .execute("vacuum analyze hookstead.live_deliveries")
            .await?;
        server.execute("checkpoint").await
    }

    /// A file with the messages that ask for the first attempts, one a line.
    pub(crate) fn messages(&self, server: &Server) -> anyhow::Result<PathBuf> {
        let mut text = String::new();
        for request in self.batches.iter().flatten() {
            let message = QueueMessage::Attempt(AttemptRequest {
                delivery_id: request.delivery_id,
                round: 1,
                attempt: 1,
                reason: AttemptReason::Due,
            });
            text.push_str(&message.encode());
            text.push('\n');
        }
        let path = server.folder().join("messages");
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Bounds of the ids of all events. The store sends those of each batch; either leave
    /// the day partitions of this hour.
    pub(crate) fn bounds(&self) -> (Uuid, Uuid) {
        let first = self.events.iter().min().copied().unwrap_or_default();
        let last = self.events.iter().max().copied().unwrap_or_default();
        (first, last)
    }

    pub(crate) fn subscribed(&self) -> &Subscribed {
        &self.subscribed
    }
}

fn request(delivery: Uuid) -> anyhow::Result<ClaimRequest> {
    Ok(ClaimRequest {
        delivery_id: DeliveryId::from_uuid(delivery),
        round: 1,
        attempt: 1,
        lease_id: LeaseId::from_uuid(Builder::from_random_bytes(random()?).into_uuid()),
    })
}

/// What the worker of the bench is called.
pub(crate) const WORKER_ID: &str = "bench/0";

/// What the bench's destination answered, had there been one.
pub(crate) const LATENCY_MS: u32 = 12;
pub(crate) const RESPONSE_SHA256: [u8; 32] = [0xe3; 32];

/// The end of an attempt, as `hookstead.finish_attempts` takes it from the store.
fn finish(request: &ClaimRequest) -> anyhow::Result<Value> {
    let now = OffsetDateTime::now_utc().format(&Rfc3339)?;
    Ok(json!({
        "delivery_id": request.delivery_id.as_uuid(), "round": 1, "attempt": 1,
        "lease_id": request.lease_id.as_uuid(), "expired_only": false,
        "state": "succeeded", "state_reason": null, "next_attempt_at": null,
        "attempt_budget": RetryPolicy::default().attempt_budget(), "deferred_until_limit": null,
        "started_at": now, "ended_at": now, "latency_ms": LATENCY_MS, "status_code": 200,
        "outcome": "success", "error_class": null, "error_detail": null,
        "response_sha256": "e3".repeat(32), "response_headers": {}, "partner_request_id": null,
        "worker_id": WORKER_ID, "region": null, "alive": true,
        "report_id": ReportId::derive(request.delivery_id, 1, 1).as_uuid(),
        "report_status": "succeeded", "provider": null, "event_type": null,
    }))
}
