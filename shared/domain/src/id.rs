//! Identifiers.
//!
//! Event ids sort by the time of receipt (UUID version 7), so that a day of
//! events is a range of ids and a partition. Delivery ids share their event's
//! time prefix and derive the rest from the pair they stand for: the same event
//! and subscription always give the same id, so a pair cannot be queued twice.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// Length in bytes of the time prefix of an event id: 48 bits of Unix milliseconds.
const TIME_PREFIX_LEN: usize = 6;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID read from the database or from a request.
            #[must_use]
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            /// The UUID, for the database driver.
            #[must_use]
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id! {
    /// One received or published event. UUID version 7 by time of receipt.
    EventId
}
id! {
    /// One source: a provider endpoint, or a producer of the customer's own.
    SourceId
}
id! {
    /// One subscription: a consumer with its destination, filter and policy.
    SubscriptionId
}
id! {
    /// What one event owes one subscription. See [`DeliveryId::derive`].
    DeliveryId
}
id! {
    /// The token of one lease: fresh and random for each claim.
    LeaseId
}
id! {
    /// One status report. Repeats of a report keep it.
    ReportId
}
id! {
    /// One installation, towards the control plane.
    InstanceId
}

impl EventId {
    /// Makes an id from the time of receipt in Unix milliseconds and ten random bytes.
    ///
    /// Six bits of the random bytes are replaced by the version and the variant.
    #[must_use]
    pub fn new(received_at_ms: u64, random: [u8; 10]) -> Self {
        Self(Builder::from_unix_timestamp_millis(received_at_ms, &random).into_uuid())
    }

    /// The time of receipt in Unix milliseconds, as carried by the id.
    #[must_use]
    pub fn received_at_ms(self) -> u64 {
        self.0.as_bytes()[..TIME_PREFIX_LEN]
            .iter()
            .fold(0, |ms, byte| (ms << 8) | u64::from(*byte))
    }
}

impl DeliveryId {
    /// Derives the id of the delivery of `event_id` to `subscription_id`.
    ///
    /// Bytes 0–5 are the event's time prefix; the rest is the start of
    /// SHA-256(event id ‖ subscription id), marked as UUID version 8. The SQL
    /// function `hookstead.delivery_id` computes the same value.
    #[must_use]
    pub fn derive(event_id: EventId, subscription_id: SubscriptionId) -> Self {
        let digest = Sha256::new()
            .chain_update(event_id.0.as_bytes())
            .chain_update(subscription_id.0.as_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes[..TIME_PREFIX_LEN].copy_from_slice(&event_id.0.as_bytes()[..TIME_PREFIX_LEN]);
        bytes[TIME_PREFIX_LEN..].copy_from_slice(&digest[..16 - TIME_PREFIX_LEN]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl ReportId {
    /// Derives the id of the report on an attempt, or with `attempt` 0 on the end of
    /// a round without one. The same facts give the same report, so that one can be
    /// written again from the history and is still recognised.
    #[must_use]
    pub fn derive(delivery_id: DeliveryId, round: u32, attempt: u32) -> Self {
        let digest = Sha256::new()
            .chain_update(b"report")
            .chain_update(delivery_id.0.as_bytes())
            .chain_update(round.to_be_bytes())
            .chain_update(attempt.to_be_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn event_ids_sort_by_time_whatever_their_random_part(
            earlier in 0u64..(1 << 47), gap in 1u64..100_000, a: [u8; 10], b: [u8; 10],
        ) {
            prop_assert!(EventId::new(earlier, a) < EventId::new(earlier + gap, b));
            prop_assert_eq!(EventId::new(earlier, a).received_at_ms(), earlier);
        }

        #[test]
        fn a_delivery_id_is_a_function_of_its_pair_and_keeps_the_time(
            ms in 0u64..(1 << 47), random: [u8; 10], one: u128, other: u128,
        ) {
            let event = EventId::new(ms, random);
            let first = SubscriptionId::from_uuid(Uuid::from_u128(one));
            let second = SubscriptionId::from_uuid(Uuid::from_u128(other));
            let id = DeliveryId::derive(event, first);
            prop_assert_eq!(id, DeliveryId::derive(event, first));
            let (id_uuid, event_uuid) = (id.as_uuid(), event.as_uuid());
            prop_assert_eq!(&id_uuid.as_bytes()[..6], &event_uuid.as_bytes()[..6]);
            prop_assert_eq!(id_uuid.get_version_num(), 8);
            if one != other {
                prop_assert_ne!(id, DeliveryId::derive(event, second));
            }
        }
    }

    #[test]
    fn every_attempt_and_every_round_has_a_report_of_its_own() {
        let deliveries = [1, 2].map(|n| DeliveryId::from_uuid(Uuid::from_u128(n)));
        let mut ids = std::collections::HashSet::new();
        for delivery in deliveries {
            for round in 1..4 {
                for attempt in 0..4 {
                    let id = ReportId::derive(delivery, round, attempt);
                    assert_eq!(id, ReportId::derive(delivery, round, attempt));
                    assert!(ids.insert(id));
                }
            }
        }
    }

    #[test]
    fn ids_parse_what_they_print() {
        let id = EventId::new(1_700_000_000_000, [7; 10]);
        assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
        assert!("not-an-id".parse::<EventId>().is_err());
    }
}
