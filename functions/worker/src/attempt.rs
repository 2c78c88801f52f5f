//! One attempt: its limits around what the destination does.

use std::time::Duration;

use hookstead_domain::{ErrorClass, Outcome, lease_length};
use hookstead_store::delivering::Claimed;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::destination::{Answered, Attempt};
use crate::ledger::{Ended, Ledger};
use crate::panics::caught;
use crate::worker::Shared;

/// Why an attempt is refused that could take longer than a batch may. Broken off at the
/// end of each batch it would begin again for ever.
pub(crate) const BATCH_TOO_SHORT: &str = "timeout_exceeds_batch";

/// How an attempt's task ended.
pub(crate) enum Done {
    /// It is to be written down.
    Ended(Box<Ended>),
    /// It is written already, by the handler's own transaction.
    Recorded,
    /// The lease is gone, and with it the right to write anything.
    LeaseLost,
}

/// The time of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchTime {
    /// When its attempts must be over.
    pub(crate) attempts_until: Instant,
    /// What its attempts had to begin with: one that could take longer is not begun.
    pub(crate) length: Duration,
}

/// Attempts a claimed delivery.
pub(crate) async fn make(
    shared: &Shared,
    claimed: Box<Claimed>,
    asked_at: Instant,
    time: BatchTime,
) -> Done {
    let ledger = Ledger::open(&claimed, asked_at);
    let (attempt, kind) = match begin(shared, *claimed, &ledger, time) {
        Ok(begun) => begun,
        Err(refused) => return ended(ledger, refused.into()),
    };
    let attempting = caught(dispatch(shared, &kind, attempt, &ledger, time));
    let mut stopping = shared.stopping.subscribe();
    let done = tokio::select! {
        biased;
        done = attempting => done,
        // An error means that the worker itself is gone, and nobody waits any more.
        _ = stopping.wait_for(|stopping| *stopping) => Ok(Dispatched::Answered(Outcome::stopped().into())),
        () = sleep_until(time.attempts_until) => Ok(Dispatched::Answered(Outcome::stopped().into())),
    };
    match done {
        Ok(Dispatched::Answered(answered)) => ended(ledger, answered),
        Ok(Dispatched::Recorded) => Done::Recorded,
        Ok(Dispatched::LeaseLost) => Done::LeaseLost,
        Err(_) => {
            tracing::error!(
                delivery.id = %ledger.delivery_id,
                "a fault of Hookstead: an attempt panicked; it is tried again"
            );
            ended(ledger, Answered::failed(ErrorClass::Internal, "panic"))
        }
    }
}

fn ended(ledger: Ledger, answered: Answered) -> Done {
    Done::Ended(Box::new(ledger.end(answered)))
}

/// An attempt that is not begun: its class, and a code that says why.
pub(crate) struct Refused(pub(crate) ErrorClass, pub(crate) &'static str);

impl From<Refused> for Answered {
    fn from(Refused(error, detail): Refused) -> Self {
        Self::failed(error, detail)
    }
}

/// What a destination made of an attempt.
pub(crate) enum Dispatched {
    Answered(Answered),
    /// Written by the handler's own transaction.
    Recorded,
    LeaseLost,
}

/// The attempt with its time, or why it is not begun.
fn begin(
    shared: &Shared,
    claimed: Claimed,
    ledger: &Ledger,
    time: BatchTime,
) -> Result<(Attempt, String), Refused> {
    let Some(event) = claimed.event else {
        return Err(Refused(ErrorClass::EventMissing, "event_missing"));
    };
    let refused = |detail| Err(Refused(ErrorClass::InvalidDestination, detail));
    let timeout_ms = claimed.policy.timeout_ms();
    let visibility_ms = shared.settings.visibility_timeout.as_millis();
    let visibility_ms = u64::try_from(visibility_ms).unwrap_or(u64::MAX);
    if lease_length(timeout_ms, visibility_ms).is_err() {
        return refused("timeout_exceeds_visibility");
    }
    let time_limit = Duration::from_millis(timeout_ms);
    if time_limit > time.length {
        return refused(BATCH_TOO_SHORT);
    }
    let kind = claimed.subscription.destination.get("kind");
    let Some(kind) = kind.and_then(Value::as_str).map(str::to_owned) else {
        return refused("kind_missing");
    };
    let attempt = Attempt {
        delivery_id: claimed.delivery_id,
        round: ledger.delivery.round,
        number: ledger.delivery.attempt_count,
        lease_id: claimed.lease_id,
        event,
        subscription: claimed.subscription,
        clock: ledger.clock,
        time_limit,
    };
    Ok((attempt, kind))
}

async fn dispatch(
    shared: &Shared,
    kind: &str,
    attempt: Attempt,
    ledger: &Ledger,
    time: BatchTime,
) -> Dispatched {
    if kind == "handler" {
        let Some(handlers) = &shared.destinations.handlers else {
            let answered = Answered::failed(ErrorClass::HandlerMissing, "no_handlers");
            return Dispatched::Answered(answered);
        };
        return handlers.attempt(shared, attempt, ledger, time.length).await;
    }
    let Some(destination) = shared.destinations.get(kind) else {
        let answered = Answered::failed(ErrorClass::InvalidDestination, "unknown_kind");
        return Dispatched::Answered(answered);
    };
    let limit = attempt.time_limit;
    // An adapter keeps the limit itself and can say where the time went; this is for
    // one that does not.
    let answered = tokio::time::timeout(limit, destination.attempt(attempt)).await;
    Dispatched::Answered(answered.unwrap_or_else(|_| timed_out(limit)))
}

/// An attempt whose time is over.
pub(crate) fn timed_out(limit: Duration) -> Answered {
    let mut answered = Answered::failed(ErrorClass::Timeout, "timeout");
    answered.observed.latency_ms = u32::try_from(limit.as_millis()).ok();
    answered
}
