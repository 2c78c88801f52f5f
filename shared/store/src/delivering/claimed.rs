//! What a worker gets with a claim: all that one attempt needs.

use hookstead_domain::{
    Delivery, DeliveryId, EventId, LeaseId, RetryPolicy, SourceId, SourceName, SubscriptionId,
    Timestamp,
};
use serde_json::Value;

/// A delivery under a lease of the caller's, with everything that its attempt needs.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its id: the same over all attempts and rounds.
    pub delivery_id: DeliveryId,
    /// Where it stands: leased, with the attempt counted.
    pub delivery: Delivery,
    /// The token of the lease.
    pub lease_id: LeaseId,
    /// The policy that its round began with.
    pub policy: RetryPolicy,
    /// The database's time at the claim: the one clock of the attempt.
    pub claimed_at: Timestamp,
    /// The event; `None` where it is no longer stored.
    pub event: Option<ClaimedEvent>,
    /// The subscription.
    pub subscription: ClaimedSubscription,
}

/// The event of a claimed delivery.
#[derive(Clone)]
pub struct ClaimedEvent {
    /// Its id.
    pub event_id: EventId,
    /// Where it came from.
    pub source_id: SourceId,
    /// The source's name.
    pub source_name: SourceName,
    /// The source's kind, such as `stripe`.
    pub source_kind: String,
    /// Whether reports may name the kind and the type.
    pub report_event_type: bool,
    /// The provider's own id of it.
    pub external_event_id: String,
    /// Its type.
    pub event_type: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// The version of its schema.
    pub schema_version: String,
    /// The `Content-Type` that it came with.
    pub content_type: Option<String>,
    /// The bytes that came.
    pub raw_body: Vec<u8>,
    /// When it happened, as the provider says.
    pub occurred_at: Option<Timestamp>,
    /// When it was received.
    pub received_at: Timestamp,
    /// The event that it follows from.
    pub cause_event_id: Option<EventId>,
}

/// The subscription of a claimed delivery.
#[derive(Clone)]
pub struct ClaimedSubscription {
    /// Its id.
    pub subscription_id: SubscriptionId,
    /// Its name.
    pub name: String,
    /// Where it goes: an object whose `kind` says how to read it.
    pub destination: Value,
    /// The signing secret.
    pub secret_current: Option<SealedSecret>,
    /// The one before.
    pub secret_previous: Option<SealedSecret>,
    /// Until when it is still used beside the current one.
    pub previous_until: Option<Timestamp>,
}

/// An encrypted secret and the name of the key that it is encrypted under.
#[derive(Clone)]
pub struct SealedSecret {
    /// The encrypted bytes.
    pub bytes: Vec<u8>,
    /// The key.
    pub key_id: String,
}

impl SealedSecret {
    pub(super) fn of(bytes: Option<Vec<u8>>, key_id: Option<String>) -> Option<Self> {
        Some(Self {
            bytes: bytes?,
            key_id: key_id?,
        })
    }
}

/// Ids and sizes alone: bodies are never printed.
impl std::fmt::Debug for ClaimedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClaimedEvent")
            .field("event_id", &self.event_id)
            .field("source_id", &self.source_id)
            .field("raw_body_bytes", &self.raw_body.len())
            .finish_non_exhaustive()
    }
}

/// No address and no secret is printed.
impl std::fmt::Debug for ClaimedSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClaimedSubscription")
            .field("subscription_id", &self.subscription_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedSecret")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}
