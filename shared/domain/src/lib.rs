//! Words and rules of Hookstead.
//!
//! Nothing here reads a clock, draws a random number or performs IO: the time,
//! random bytes and jitter come in as arguments, so every rule can be tested by
//! its inputs alone. All other crates may depend on this one; it depends on none
//! of them.

mod age;
mod delivery;
mod docs;
mod envelope;
mod error_class;
mod error_code;
mod event_type;
mod health;
mod http_answer;
mod id;
mod jitter;
mod lease;
mod outcome;
mod queue_message;
mod reason;
mod report;
mod retry_after;
mod retry_policy;
mod source_name;

pub use age::is_recent;
pub use delivery::{
    CancelRefused, Claim, ClaimRefused, DEFER_WAIT_S, Delivery, Finish, LeaseLost,
    MIN_DEFER_WAIT_S, Move, NotOver, ReapRefused, State, StateName, TRANSITIONS, Terms, Transition,
};
pub use docs::{retries_page, states_page};
pub use envelope::{Attribute, Envelope, SPEC_VERSION};
pub use error_class::{ErrorClass, FailureKind, UnknownErrorClass};
pub use error_code::ErrorCode;
pub use event_type::{EventTypePattern, InvalidPattern};
pub use health::{
    BREAKER_THRESHOLD, FAILING_TOO_LONG_S, FIRST_PAUSE_S, LONGEST_PAUSE_S, fails_too_long,
    is_half_open, pause_after,
};
pub use http_answer::{HttpAnswer, OUTCOME_HEADER, STATUSES};
pub use id::{DeliveryId, EventId, InstanceId, LeaseId, ReportId, SourceId, SubscriptionId};
pub use jitter::Jitter;
pub use lease::{LEASE_MARGIN_MS, Lease, LeaseTooLong, MAX_LOST_LEASES, lease_length};
pub use outcome::{FailureKey, Outcome, identical_in_a_row};
pub use queue_message::{
    AttemptReason, AttemptRequest, DeadLetterNotice, MAX_QUEUE_MESSAGE_BYTES,
    QUEUE_MESSAGE_VERSION, QueueMessage, Undecodable,
};
pub use reason::{CancelReason, DeadLetterReason, InvalidReasonCode, ReasonCode};
pub use report::{REPORT_SCHEMA_VERSION, Report, ReportStatus, ReportSubject};
pub use retry_after::{MAX_RETRY_AFTER_S, RETRY_AFTER, retry_after};
pub use retry_policy::{
    InvalidRetryPolicy, MAX_AGE_S, MAX_GIVE_UP_AFTER, MAX_RETRIES, MAX_TIMEOUT_MS, MAX_WAIT_S,
    RetryPolicy,
};
pub use source_name::{InvalidSourceName, SourceName};

/// A moment, with its offset. Always an argument: nothing here reads a clock.
pub type Timestamp = time::OffsetDateTime;
