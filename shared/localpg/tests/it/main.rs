//! Integration tests of finding, starting and stopping PostgreSQL.
#![allow(clippy::unwrap_used)]

mod find;
mod outlive;
mod serve;
mod support;
