//! The worker: makes the attempts that deliveries are due for.
//!
//! A batch of queue messages passes these steps: one claim, the attempts side by
//! side, and one finish. Messages are hints, so a message fails only where this
//! worker could not do its part; a delivery that failed at its destination is
//! tried again by what stands in the database, never by its message.
//!
//! No transaction is open and no connection is held while a destination is asked.
//! The one exception is what handlers are for: [`handler`] code runs inside a
//! transaction that ends the delivery together with the handler's own writes.
//!
//! [`sqs_event`] is the Lambda's way in, [`poller`] that of a single machine.

mod attempt;
mod batch;
mod chance;
mod clock;
pub mod config;
mod destination;
pub mod destinations;
mod finishing;
pub mod handler;
pub mod lambda;
mod ledger;
pub mod logs;
mod operations;
mod panics;
pub mod poller;
mod record;
pub mod sqs_event;
mod worker;

pub use clock::DatabaseClock;
pub use destination::{Answered, Attempt, AttemptFuture, Destination, Destinations, Observed};
pub use record::{BatchAnswer, MissingMessageId, QueueRecord};
pub use worker::{
    CLAIM_PATIENCE, FINISH_RESERVE, HEARTBEATS_PER_LEASE, LINGER, Worker, WorkerSettings,
};
