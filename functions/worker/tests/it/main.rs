//! The worker from messages to rows, on a real PostgreSQL and real sockets.
#![allow(clippy::unwrap_used)]

mod attempts;
mod batches;
mod fences;
mod handler_defences;
mod handler_faults;
mod handlers;
mod health;
mod messages;
mod notes;
mod production;
mod projection;
mod rounds;
mod signatures;
mod targets;
mod world;
