//! The command as its users run it: the real binary, a real PostgreSQL, real HTTP.
#![allow(clippy::unwrap_used)]

mod apply;
mod deliveries;
mod delivering;
mod http;
mod owed;
mod publish;
mod sink;
mod stop;
mod subscriptions;
mod support;
mod tail;
mod usage;
mod verify;
mod walk;
