//! The relay, on a real PostgreSQL, real queues in the process, and a real HTTP server.
#![allow(clippy::unwrap_used)]

mod announcing;
mod config;
mod control_plane;
mod dispatching;
mod expanding;
mod faults;
mod many_relays;
mod queues;
mod reaping;
mod shipping;
mod tidying;
mod world;
