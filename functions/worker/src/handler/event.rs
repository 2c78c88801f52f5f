//! The event that a handler gets.

use hookstead_domain::{DeliveryId, Timestamp};
use hookstead_store::delivering::ClaimedEvent;
use serde::de::DeserializeOwned;

use crate::clock::DatabaseClock;

/// An event on its way to a handler. Its `Debug` shows ids and sizes alone.
#[derive(Debug)]
pub struct Event {
    /// The event itself: id, source, type, times, exact bytes.
    pub event: ClaimedEvent,
    /// The delivery: the same in all attempts.
    pub delivery_id: DeliveryId,
    /// The name of the subscription.
    pub subscription: String,
    /// Its round: 1, and one more for each replay.
    pub round: u32,
    /// The number of the attempt in its round, from 1.
    pub attempt: u32,
    /// The time.
    pub clock: DatabaseClock,
}

impl Event {
    /// The body, read as JSON.
    ///
    /// # Errors
    ///
    /// Where it has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.event.raw_body)
    }

    /// The type of the event.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event.event_type
    }

    /// The time now, by the database's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// When it happened, as the provider says; when it was received, where nobody says.
    #[must_use]
    pub fn happened_at(&self) -> Timestamp {
        self.event.occurred_at.unwrap_or(self.event.received_at)
    }
}
