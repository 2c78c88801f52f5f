//! Queues.

mod conformance;
mod local;
