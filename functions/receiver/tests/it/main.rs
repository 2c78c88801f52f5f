//! The receiver from request to answer, on a real PostgreSQL.
#![allow(clippy::unwrap_used)]

mod bodies;
mod config;
mod deduplication;
mod directory;
mod faults;
mod gateway;
mod handshakes;
mod kick;
mod logs;
mod paths;
mod secrets;
mod signatures;
mod world;
