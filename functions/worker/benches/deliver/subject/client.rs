//! The client alone: what the sink and loopback allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookstead_domain::{DeliveryId, EventId, LeaseId, Outcome, SourceId, SubscriptionId};
use hookstead_store::delivering::{ClaimedEvent, ClaimedSubscription, SealedSecret};
use hookstead_worker::destinations::HttpDestination;
use hookstead_worker::{Attempt, DatabaseClock, Destination as _};
use time::OffsetDateTime;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Clock, Measured, Sealed, Site};
use crate::sample;

/// Runs in the child: the same requests, signed as well, without queue and database.
pub(crate) async fn run(
    site: &Site,
    sealed: Sealed,
    count: usize,
    at_once: usize,
) -> anyhow::Result<Measured> {
    let http = Arc::new(site.http()?);
    let sealed = Arc::new(sealed);
    let left = Arc::new(AtomicUsize::new(count));
    let clock = Clock::start()?;
    let mut running = JoinSet::new();
    for _ in 0..at_once {
        running.spawn(send(
            Arc::clone(&http),
            Arc::clone(&sealed),
            Arc::clone(&left),
        ));
    }
    let mut latencies_ms = Vec::with_capacity(count);
    while let Some(sent) = running.join_next().await {
        latencies_ms.extend(sent??);
    }
    Ok(Measured {
        latencies_ms,
        ..clock.stop()?
    })
}

async fn send(
    http: Arc<HttpDestination>,
    sealed: Arc<Sealed>,
    left: Arc<AtomicUsize>,
) -> anyhow::Result<Vec<f64>> {
    let mut latencies_ms = Vec::new();
    while take_one(&left) {
        let attempt = attempt(&sealed)?;
        let began = Instant::now();
        let answered = http.attempt(attempt).await;
        latencies_ms.push(began.elapsed().as_secs_f64() * 1e3);
        let detail = answered.observed.detail;
        anyhow::ensure!(answered.outcome == Outcome::Success, "{detail:?}");
    }
    Ok(latencies_ms)
}

fn take_one(left: &AtomicUsize) -> bool {
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(1)
    });
    taken.is_ok()
}

fn attempt(sealed: &Sealed) -> anyhow::Result<Attempt> {
    let now = OffsetDateTime::now_utc();
    let event_id = EventId::new(u64::try_from(now.unix_timestamp())? * 1_000, [7; 10]);
    let subscription_id = SubscriptionId::from_uuid(sealed.subscription_id);
    Ok(Attempt {
        delivery_id: DeliveryId::derive(event_id, subscription_id),
        round: 1,
        number: 1,
        lease_id: LeaseId::from_uuid(Uuid::from_u128(1)),
        event: ClaimedEvent {
            event_id,
            source_id: SourceId::from_uuid(Uuid::from_u128(1)),
            source_name: "stripe".parse()?,
            source_kind: "stripe".to_owned(),
            report_event_type: false,
            external_event_id: "evt_0".to_owned(),
            event_type: sample::EVENT_TYPE.to_owned(),
            tenant: None,
            schema_version: "1".to_owned(),
            content_type: Some(sample::CONTENT_TYPE.to_owned()),
            raw_body: sample::body(0).into_bytes(),
            occurred_at: Some(now),
            received_at: now,
            cause_event_id: None,
        },
        subscription: ClaimedSubscription {
            subscription_id,
            name: "everything".to_owned(),
            destination: sealed.destination.clone(),
            secret_current: Some(SealedSecret {
                bytes: sealed.bytes.clone(),
                key_id: sealed.key_id.clone(),
            }),
            secret_previous: None,
            previous_until: None,
        },
        clock: DatabaseClock::new(now, Instant::now()),
        time_limit: Duration::from_secs(30),
    })
}
