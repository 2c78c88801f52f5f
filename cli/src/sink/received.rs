//! What the sink took down of a request.

use std::fmt;

use bytes::Bytes;
use hookstead_signing::Headers;
use serde::Serialize;
use time::OffsetDateTime;

/// One request as it arrived.
///
/// Its headers and body are there for whoever holds the sink; nothing prints them.
#[derive(Clone, Serialize)]
pub struct Received {
    /// Counts requests from 1.
    pub number: u64,
    /// When its last byte was there.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The method.
    pub method: String,
    /// The path, without the query: that may hold a token.
    pub path: String,
    /// `webhook-id`: the delivery.
    pub webhook_id: Option<String>,
    /// `hookstead-attempt`: which attempt of the delivery, from 1.
    pub attempt: Option<u32>,
    /// `ce-type`: the type of the event.
    pub event_type: Option<String>,
    /// Length of the body.
    pub bytes: usize,
    /// Whether its signature verifies; `None` where the sink has no secret.
    pub verified: Option<bool>,
    /// How it is answered: a status, `reset` or `hang`.
    pub answer: String,
    /// Every header, in order.
    #[serde(skip)]
    pub headers: Headers,
    /// The exact body.
    #[serde(skip)]
    pub body: Bytes,
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("number", &self.number)
            .field("webhook_id", &self.webhook_id)
            .field("attempt", &self.attempt)
            .field("bytes", &self.bytes)
            .field("verified", &self.verified)
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

/// How many requests there were, and how they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All of them.
    pub received: u64,
    /// Those whose signature verified.
    pub verified: u64,
    /// Those whose signature did not.
    pub not_verified: u64,
    /// Those answered with 200 to 299.
    pub accepted: u64,
    /// Those answered with another status, reset, or left without an answer.
    pub refused: u64,
}

impl Counts {
    pub(super) fn add(&mut self, received: &Received, accepted: bool) {
        self.received += 1;
        match received.verified {
            Some(true) => self.verified += 1,
            Some(false) => self.not_verified += 1,
            None => {}
        }
        if accepted {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
    }
}
