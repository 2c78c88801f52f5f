//! The worker from messages to rows, on a real PostgreSQL and real sockets.
#![allow(clippy::unwrap_used)]

mod attempts;
mod batches;
mod fences;
mod handlers;
mod health;
mod messages;
mod projection;
mod rounds;
mod targets;
mod world;
