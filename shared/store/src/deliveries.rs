//! Looking at deliveries: lists, one with its rounds, its attempts, what is new.

mod attempts;
mod list;
mod recent;
mod show;

pub use attempts::{AttemptRecord, attempts_of};
pub use list::{DeliveryFilter, DeliveryListing, list_deliveries};
pub use recent::{AttemptEnded, DeliveryEnded, EventStored, Recent, recent};
pub use show::{DeliveryDetail, DeliveryRound, show_delivery};

use time::OffsetDateTime;
use uuid::Uuid;

/// The low bits of an id that carry no time.
const LOW_BITS: u128 = (1 << 80) - 1;

/// The smallest id that an event or delivery of this time can have.
pub(crate) fn first_id_at(time: OffsetDateTime) -> Uuid {
    let ms = u128::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
    Uuid::from_u128(ms << 80)
}

/// The range of ids that share this one's time prefix: an event and its deliveries.
pub(crate) fn range_around(id: Uuid) -> (Uuid, Uuid) {
    let id = id.as_u128();
    (
        Uuid::from_u128(id & !LOW_BITS),
        Uuid::from_u128(id | LOW_BITS),
    )
}
