//! Queues.

mod conformance;
mod local;
mod sqs;
