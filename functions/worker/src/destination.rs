//! Where deliveries go: one port, an adapter for each kind.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hookstead_domain::{DeliveryId, ErrorClass, LeaseId, Outcome};
use hookstead_store::delivering::{ClaimedEvent, ClaimedSubscription};
use serde_json::Value;

use crate::clock::DatabaseClock;
use crate::handler::HandlerDestination;

/// The future of [`Destination::attempt`].
pub type AttemptFuture<'a> = Pin<Box<dyn Future<Output = Answered> + Send + 'a>>;

/// A kind of destination.
pub trait Destination: Send + Sync {
    /// Makes one attempt. A failure is an answer like any other; nothing is retried in
    /// here. Dropped when the attempt's time is over or the worker stops.
    fn attempt(&self, attempt: Attempt) -> AttemptFuture<'_>;
}

/// What one attempt needs, handed over: bodies are not copied.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The delivery: its id is the same in all attempts.
    pub delivery_id: DeliveryId,
    /// Its round.
    pub round: u32,
    /// The number of the attempt in its round, from 1.
    pub number: u32,
    /// The token of the lease.
    pub lease_id: LeaseId,
    /// What is delivered.
    pub event: ClaimedEvent,
    /// Whom it is delivered to.
    pub subscription: ClaimedSubscription,
    /// The time.
    pub clock: DatabaseClock,
    /// How long the attempt may take.
    pub time_limit: Duration,
}

/// What came of an attempt, and what was seen.
#[derive(Clone, Debug)]
pub struct Answered {
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen.
    pub observed: Observed,
}

/// What was seen of the destination. Nothing of a body is in it, and no text but the
/// values of allow-listed headers.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// How long it took, in milliseconds.
    pub latency_ms: Option<u32>,
    /// The answer's status, 100 to 599.
    pub status_code: Option<u16>,
    /// More about a failure, as a code.
    pub detail: Option<String>,
    /// The SHA-256 of what was read of the answer.
    pub response_sha256: Option<[u8; 32]>,
    /// Allow-listed headers of the answer: an object.
    pub response_headers: Option<Value>,
    /// The destination's own id of the request, at most 256 characters.
    pub partner_request_id: Option<String>,
}

impl Answered {
    /// An attempt that failed, with a code that says where.
    #[must_use]
    pub fn failed(error: ErrorClass, detail: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::failed(error, None),
            observed: Observed {
                detail: Some(detail.into()),
                ..Observed::default()
            },
        }
    }
}

impl From<Outcome> for Answered {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            observed: Observed::default(),
        }
    }
}

/// The destinations that a worker knows, by kind.
#[derive(Clone, Default)]
pub struct Destinations {
    kinds: HashMap<&'static str, Arc<dyn Destination>>,
    pub(crate) handlers: Option<Arc<HandlerDestination>>,
}

impl Destinations {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These and one more, in place of what was known by that kind.
    #[must_use]
    pub fn with(mut self, kind: &'static str, destination: impl Destination + 'static) -> Self {
        self.kinds.insert(kind, Arc::new(destination));
        self
    }

    /// These and handlers of one's own: the kind `handler`.
    #[must_use]
    pub fn with_handlers(mut self, handlers: HandlerDestination) -> Self {
        self.handlers = Some(Arc::new(handlers));
        self
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&Arc<dyn Destination>> {
        self.kinds.get(kind)
    }
}

impl fmt::Debug for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destinations")
            .field("kinds", &self.kinds.keys())
            .field("handlers", &self.handlers)
            .finish()
    }
}
