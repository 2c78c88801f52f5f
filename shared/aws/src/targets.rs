//! Destinations of AWS that deliveries go to: queues, event buses, functions.
//!
//! Each call is tried once, within the time it is given: deliveries have a schedule of
//! their own. What a destination receives is in [`structured`] and [`SqsTarget`].

mod eventbridge;
mod failure;
mod lambda;
mod message;
mod sqs;

use std::pin::Pin;
use std::time::Duration;

pub use eventbridge::{EventBridgeTarget, MAX_DETAIL_TYPE_BYTES, MAX_ENTRY_BYTES};
pub use failure::TargetFailure;
pub use lambda::{LambdaTarget, MAX_PAYLOAD_BYTES};
pub use message::{TargetMessage, structured};
pub use sqs::{MAX_ATTRIBUTES, SqsTarget};

/// What a send gives.
pub type TargetFuture<'a> =
    Pin<Box<dyn Future<Output = Result<TargetReceipt, TargetFailure>> + Send + 'a>>;

/// A destination.
pub trait Target: Send + Sync {
    /// Sends one event, and waits at most `timeout` for the destination to have taken it.
    ///
    /// # Errors
    /// Where it has not, or nobody can tell. It may have, then, after a time-out.
    fn send<'a>(&'a self, message: &'a TargetMessage<'a>, timeout: Duration) -> TargetFuture<'a>;
}

/// What a destination says of an event that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReceipt {
    /// What AWS calls it: the message id of a queue, the event id of a bus, the request
    /// id of a function. Support can find it by that. Empty where AWS gave none.
    pub request_id: String,
}
