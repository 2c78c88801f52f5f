//! What stands in the queue: ids and counts, never a payload.
//!
//! A message is a hint. Losing, repeating or reordering one loses nothing and
//! repeats nothing, because whoever acts on it asks the database first.

use serde::{Deserialize, Serialize};

use crate::{DeadLetterReason, DeliveryId, EventId, SubscriptionId};

/// The version that is written. Fields are only ever added under the same version.
pub const QUEUE_MESSAGE_VERSION: u32 = 1;

/// Most bytes of a message: ids, small numbers and one code.
pub const MAX_QUEUE_MESSAGE_BYTES: usize = 512;

/// One message of the deliveries queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueMessage {
    /// Asks for one attempt.
    Attempt(AttemptRequest),
    /// Says that a delivery was given up. It belongs to the dead-letter queue; moved
    /// back from there, it asks for a new round.
    DeadLetter(DeadLetterNotice),
}

/// Asks for one attempt of one round, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptRequest {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// Its round.
    pub round: u32,
    /// The number that the attempt would have.
    pub attempt: u32,
    /// Who asks. For people who look into a queue; nothing depends on it.
    pub reason: AttemptReason,
}

/// Who asks for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptReason {
    /// The receiver, right after its commit.
    Kick,
    /// The relay, because the attempt is due.
    Due,
}

/// A delivery that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeadLetterNotice {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// The round that ended so.
    pub round: u32,
    /// The attempts that were made in it.
    pub attempt_count: u32,
    /// Its event.
    pub event_id: EventId,
    /// Its subscription.
    pub subscription_id: SubscriptionId,
    /// Why.
    pub state_reason: DeadLetterReason,
}

/// Why a text is no message of ours. It never quotes the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Longer than [`MAX_QUEUE_MESSAGE_BYTES`].
    #[error("the message is longer than one of ours")]
    TooLong,
    /// Not JSON of this shape.
    #[error("the message does not have the shape of one of ours")]
    Shape,
    /// Of a version that this program does not know.
    #[error("the message is of an unknown version")]
    Version,
}

#[derive(Serialize, Deserialize)]
struct Written {
    v: u32,
    delivery_id: DeliveryId,
    round: u32,
    attempt: u32,
    reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_id: Option<EventId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subscription_id: Option<SubscriptionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state_reason: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Kick,
    Due,
    DeadLetter,
}

/// The one field that every version has.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

impl QueueMessage {
    /// The message as it is sent: JSON of at most [`MAX_QUEUE_MESSAGE_BYTES`].
    #[must_use]
    pub fn encode(&self) -> String {
        let written = match self {
            Self::Attempt(request) => Written {
                v: QUEUE_MESSAGE_VERSION,
                delivery_id: request.delivery_id,
                round: request.round,
                attempt: request.attempt,
                reason: match request.reason {
                    AttemptReason::Kick => Reason::Kick,
                    AttemptReason::Due => Reason::Due,
                },
                event_id: None,
                subscription_id: None,
                state_reason: None,
            },
            Self::DeadLetter(notice) => Written {
                v: QUEUE_MESSAGE_VERSION,
                delivery_id: notice.delivery_id,
                round: notice.round,
                attempt: notice.attempt_count,
                reason: Reason::DeadLetter,
                event_id: Some(notice.event_id),
                subscription_id: Some(notice.subscription_id),
                state_reason: Some(notice.state_reason.as_str().to_owned()),
            },
        };
        serde_json::to_string(&written).expect("ids, numbers and codes are always JSON")
    }

    /// Reads a message. Unknown fields are ignored: they were added later.
    ///
    /// # Errors
    ///
    /// Where the text is no message of a version that we know.
    pub fn decode(text: &str) -> Result<Self, Undecodable> {
        if text.len() > MAX_QUEUE_MESSAGE_BYTES {
            return Err(Undecodable::TooLong);
        }
        let version: Versioned = serde_json::from_str(text).map_err(|_| Undecodable::Shape)?;
        if version.v != QUEUE_MESSAGE_VERSION {
            return Err(Undecodable::Version);
        }
        let written: Written = serde_json::from_str(text).map_err(|_| Undecodable::Shape)?;
        written.message().ok_or(Undecodable::Shape)
    }
}

impl Written {
    fn message(self) -> Option<QueueMessage> {
        let asks = |reason| {
            QueueMessage::Attempt(AttemptRequest {
                delivery_id: self.delivery_id,
                round: self.round,
                attempt: self.attempt,
                reason,
            })
        };
        Some(match self.reason {
            Reason::Kick => asks(AttemptReason::Kick),
            Reason::Due => asks(AttemptReason::Due),
            Reason::DeadLetter => QueueMessage::DeadLetter(DeadLetterNotice {
                delivery_id: self.delivery_id,
                round: self.round,
                attempt_count: self.attempt,
                event_id: self.event_id?,
                subscription_id: self.subscription_id?,
                state_reason: DeadLetterReason::from_code(&self.state_reason?)?,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(number: u128) -> DeliveryId {
        DeliveryId::from_uuid(Uuid::from_u128(number))
    }

    fn notice(reason: DeadLetterReason) -> DeadLetterNotice {
        DeadLetterNotice {
            delivery_id: id(1),
            round: u32::MAX,
            attempt_count: u32::MAX,
            event_id: EventId::from_uuid(Uuid::from_u128(2)),
            subscription_id: SubscriptionId::from_uuid(Uuid::from_u128(3)),
            state_reason: reason,
        }
    }

    #[test]
    fn a_message_is_these_bytes() {
        let request = AttemptRequest {
            delivery_id: id(1),
            round: 2,
            attempt: 3,
            reason: AttemptReason::Due,
        };
        assert_eq!(
            QueueMessage::Attempt(request).encode(),
            concat!(
                r#"{"v":1,"delivery_id":"00000000-0000-0000-0000-000000000001","#,
                r#""round":2,"attempt":3,"reason":"due"}"#
            )
        );
    }

    #[test]
    fn wrk_01_no_message_is_longer_than_its_limit() {
        for reason in DeadLetterReason::ALL {
            let message = QueueMessage::DeadLetter(notice(*reason));
            let text = message.encode();
            assert!(text.len() <= MAX_QUEUE_MESSAGE_BYTES, "{}", text.len());
            assert_eq!(QueueMessage::decode(&text), Ok(message));
        }
    }

    #[test]
    fn fields_of_a_later_time_are_ignored_and_later_versions_are_not_guessed() {
        let text = QueueMessage::DeadLetter(notice(DeadLetterReason::Gone)).encode();
        let longer = text.replacen('{', r#"{"later":{"a":[1]},"#, 1);
        assert_eq!(QueueMessage::decode(&longer), QueueMessage::decode(&text));
        let other = text.replacen("\"v\":1", "\"v\":2", 1);
        assert_eq!(QueueMessage::decode(&other), Err(Undecodable::Version));
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_read_as_it_was_written(
            number: u128, round: u32, attempt: u32, kick: bool,
        ) {
            let reason = if kick { AttemptReason::Kick } else { AttemptReason::Due };
            let request = AttemptRequest { delivery_id: id(number), round, attempt, reason };
            let message = QueueMessage::Attempt(request);
            prop_assert_eq!(QueueMessage::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,600}|\\{\"v\":1[^}]{0,80}\\}") {
            prop_assert!(QueueMessage::decode(&text).is_err());
        }
    }
}
