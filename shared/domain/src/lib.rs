//! Words and rules of Hookstead.
//!
//! Nothing here reads a clock, draws a random number or performs IO: the time,
//! random bytes and jitter come in as arguments, so every rule can be tested by
//! its inputs alone. All other crates may depend on this one; it depends on none
//! of them.

mod error_code;
mod event_type;
mod id;
mod source_name;

pub use error_code::ErrorCode;
pub use event_type::{EventTypePattern, InvalidPattern};
pub use id::{DeliveryId, EventId, SourceId, SubscriptionId};
pub use source_name::{InvalidSourceName, SourceName};
