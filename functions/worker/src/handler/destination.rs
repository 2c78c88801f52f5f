//! The destination `handler`.

use std::time::Duration;

use hookstead_domain::{ErrorClass, LEASE_MARGIN_MS, Outcome};
use hookstead_store::delivering::ExtendLease;
use hookstead_store::{Connections, StoreError};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::erased::ErasedHandler;
use super::guarded::{Guarded, GuardedEnd};
use super::{Event, Handlers};
use crate::attempt::{BATCH_TOO_SHORT, Dispatched, timed_out};
use crate::destination::{Answered, Attempt};
use crate::ledger::Ledger;
use crate::panics::caught;
use crate::worker::Shared;

/// Handlers, and the connections that they write through.
#[derive(Debug)]
pub struct HandlerDestination {
    handlers: Handlers,
    connections: Connections,
}

impl HandlerDestination {
    /// Handlers over connections of their own. They must not be the worker's: a handler
    /// keeps one for as long as it runs, and claims, finishes and heartbeats must not
    /// wait for that. As many handlers run at once as there are slots.
    #[must_use]
    pub fn new(handlers: Handlers, connections: Connections) -> Self {
        Self {
            handlers,
            connections,
        }
    }

    /// Attempts a delivery, and keeps its lease meanwhile.
    pub(crate) async fn attempt(
        &self,
        shared: &Shared,
        attempt: Attempt,
        ledger: &Ledger,
        batch_length: Duration,
    ) -> Dispatched {
        let name = attempt.subscription.destination.get("name");
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let Some(handler) = self.handlers.get(name) else {
            let missing = Answered::failed(ErrorClass::HandlerMissing, "handler_missing");
            return Dispatched::Answered(missing);
        };
        let limit = handler.time_limit().unwrap_or(attempt.time_limit);
        if limit > batch_length {
            let refused = Answered::failed(ErrorClass::InvalidDestination, BATCH_TOO_SHORT);
            return Dispatched::Answered(refused);
        }
        let event = Event {
            event: attempt.event,
            delivery_id: attempt.delivery_id,
            subscription: attempt.subscription.name,
            round: attempt.round,
            attempt: attempt.number,
            clock: attempt.clock,
        };
        let handling = caught(self.handle(shared, &*handler, &event, ledger, limit));
        tokio::select! {
            biased;
            done = handling => done.unwrap_or_else(|_| Dispatched::Answered(panicked(ledger))),
            () = lease_lost(shared, ledger) => {
                tracing::warn!(
                    delivery.id = %ledger.delivery_id,
                    lease.id = %ledger.lease_id,
                    "a handler was ended: its lease was lost, or it is written already"
                );
                Dispatched::LeaseLost
            }
        }
    }

    /// Both steps, within `limit` together. Waiting for a connection in between does not
    /// count: it is others that take that time, and the lease is kept.
    async fn handle(
        &self,
        shared: &Shared,
        handler: &dyn ErasedHandler,
        event: &Event,
        ledger: &Ledger,
        limit: Duration,
    ) -> Dispatched {
        let began = Instant::now();
        let prepared = match timeout(limit, handler.prepare(event)).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => return Dispatched::Answered(error.answered()),
            Err(_) => return Dispatched::Answered(timed_out(limit)),
        };
        let guarded = Guarded {
            handler,
            event,
            prepared: &prepared,
            ledger,
            limit: limit.saturating_sub(began.elapsed()),
            worker_id: &shared.settings.worker_id,
            region: shared.settings.region.as_deref(),
        };
        match self.connections.run(&guarded).await {
            Ok(GuardedEnd::Recorded) => Dispatched::Recorded,
            Ok(GuardedEnd::LeaseLost) => {
                tracing::warn!(
                    delivery.id = %ledger.delivery_id,
                    lease.id = %ledger.lease_id,
                    "a handler's writes were rolled back: its lease was lost, or they are written already"
                );
                Dispatched::LeaseLost
            }
            Ok(GuardedEnd::Answered(answered)) => Dispatched::Answered(answered),
            Ok(GuardedEnd::Panicked) => Dispatched::Answered(panicked(ledger)),
            // Only the limit of the handler's own time says so.
            Err(StoreError::Silent) => Dispatched::Answered(timed_out(limit)),
            // It never ran: others had all the connections for too long, which is no
            // failure of its own and says nothing about it.
            Err(StoreError::AcquireTimeout) => Dispatched::Answered(Outcome::stopped().into()),
            Err(error) => Dispatched::Answered(refused(&error)),
        }
    }
}

/// The database refused or was lost around the handler.
fn refused(error: &StoreError) -> Answered {
    match error.sqlstate() {
        // A constraint that is checked at the commit, a transaction that the handler
        // left broken, a deadlock.
        Some(state) => Answered::failed(ErrorClass::HandlerRetry, format!("sqlstate_{state}")),
        None => Answered::failed(ErrorClass::Internal, "database"),
    }
}

fn panicked(ledger: &Ledger) -> Answered {
    tracing::error!(delivery.id = %ledger.delivery_id, "a handler panicked");
    Answered::failed(ErrorClass::HandlerPanicked, "panic")
}

/// Keeps the lease; ends when it is lost.
async fn lease_lost(shared: &Shared, ledger: &Ledger) {
    let length = Duration::from_millis(ledger.policy.timeout_ms() + LEASE_MARGIN_MS);
    let heartbeat = ExtendLease {
        delivery_id: ledger.delivery_id,
        lease_id: ledger.lease_id,
        length,
    };
    loop {
        sleep(length / shared.settings.heartbeats_per_lease.max(1)).await;
        match shared.connections.run(&heartbeat).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(
                delivery.id = %ledger.delivery_id,
                error = %error,
                "a lease could not be extended; it is tried again"
            ),
        }
    }
}
