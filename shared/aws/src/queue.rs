//! Queues of small messages: one port, two adapters.
//!
//! A message is a hint. It may come twice, late, out of order or not at all, and
//! nothing here promises more: what must be done is in the database.
//!
//! Who sends needs [`SendMessages`]; who decides by how much waits needs
//! [`QueueDepth`]; who polls needs [`ReceiveMessages`]. On Lambda nobody polls: the
//! event source mapping does. [`SqsQueue`] is SQS, [`LocalQueue`] serves one process.

mod limits;
mod local;
mod redrive;
mod refused;
mod sqs;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use limits::is_allowed;
pub use limits::{MAX_BATCH_BYTES, MAX_BODY_BYTES, MAX_ENTRIES, MAX_WAIT};
pub use local::{LocalQueue, MAX_HELD_BYTES};
pub use redrive::{RedriveError, redrive};
pub use refused::{QueueError, SendRefused};
pub use sqs::{MoveState, MoveTask, SqsQueue};

/// What every operation gives.
pub type QueueFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The right to put messages on a queue.
pub trait SendMessages: Send + Sync {
    /// Sends any number of messages and says of each, in the same order, whether the
    /// queue has taken it. One refusal says nothing of the others.
    ///
    /// A message that counts as refused may have arrived all the same, where the
    /// queue's answer was lost.
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>>;
}

/// The right to ask how much waits on a queue.
pub trait QueueDepth: Send + Sync {
    /// About how many messages could be received now. Those being worked on do not count.
    ///
    /// # Errors
    /// Where the queue cannot be asked.
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>>;
}

/// The right to take messages off a queue.
pub trait ReceiveMessages: Send + Sync {
    /// Takes up to `max` messages, at most [`MAX_ENTRIES`], as soon as there is one, and
    /// none when none came within `wait`, at most [`MAX_WAIT`]. Larger values count as
    /// the limits, and a `max` of 0 as 1.
    ///
    /// What is received and not deleted comes again when its visibility timeout has passed.
    ///
    /// # Errors
    /// Where the queue cannot be read.
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>>;

    /// Deletes messages by the receipts of their last receive and says of each, in the
    /// same order, whether that is done. A message that is already gone is.
    fn delete<'a>(&'a self, receipts: &'a [String])
    -> QueueFuture<'a, Vec<Result<(), QueueError>>>;
}

/// What a relay needs of a queue.
pub trait Queue: SendMessages + QueueDepth {}

impl<T: SendMessages + QueueDepth + ?Sized> Queue for T {}

/// A received message. Its `Debug` shows no body.
#[derive(Clone, PartialEq, Eq)]
pub struct Received {
    /// The queue's name for the message; it stays over receives.
    pub message_id: String,
    /// What deletes it; another one with each receive.
    pub receipt: String,
    /// The body, as it was sent.
    pub body: String,
    /// How many times it was received, this time included.
    pub receive_count: u32,
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("message_id", &self.message_id)
            .field("body_bytes", &self.body.len())
            .field("receive_count", &self.receive_count)
            .finish_non_exhaustive()
    }
}

impl<Q: SendMessages + ?Sized> SendMessages for Arc<Q> {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        (**self).send(bodies)
    }
}

impl<Q: QueueDepth + ?Sized> QueueDepth for Arc<Q> {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        (**self).depth()
    }
}

impl<Q: ReceiveMessages + ?Sized> ReceiveMessages for Arc<Q> {
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>> {
        (**self).receive(max, wait)
    }

    fn delete<'a>(
        &'a self,
        receipts: &'a [String],
    ) -> QueueFuture<'a, Vec<Result<(), QueueError>>> {
        (**self).delete(receipts)
    }
}
