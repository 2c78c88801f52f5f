//! Integration tests of the test support itself.
#![allow(clippy::unwrap_used)]

mod aws;
mod database;
mod logs;
mod proxy;
