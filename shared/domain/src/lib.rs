//! Words and rules of Hookstead.
//!
//! Nothing here reads a clock, draws a random number or performs IO: the time,
//! random bytes and jitter come in as arguments, so every rule can be tested by
//! its inputs alone. All other crates may depend on this one; it depends on none
//! of them.

mod error_class;
mod error_code;
mod event_type;
mod id;
mod reason;
mod retry_after;
mod source_name;

pub use error_class::{ErrorClass, FailureKind, UnknownErrorClass};
pub use error_code::ErrorCode;
pub use event_type::{EventTypePattern, InvalidPattern};
pub use id::{DeliveryId, EventId, SourceId, SubscriptionId};
pub use reason::{CancelReason, DeadLetterReason, InvalidReasonCode, ReasonCode};
pub use retry_after::{MAX_RETRY_AFTER_S, RETRY_AFTER, retry_after};
pub use source_name::{InvalidSourceName, SourceName};

/// A moment, with its offset. Always an argument: nothing here reads a clock.
pub type Timestamp = time::OffsetDateTime;
