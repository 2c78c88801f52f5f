//! The command as its users run it: the real binary, a real PostgreSQL, real HTTP.
#![allow(clippy::unwrap_used)]

mod apply;
mod http;
mod sink;
mod stop;
mod support;
mod usage;
mod verify;
mod walk;
