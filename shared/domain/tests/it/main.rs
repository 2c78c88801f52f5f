//! The rules from outside: against the database's own text, and over whole lives of deliveries.
#![allow(clippy::unwrap_used)]

mod delivery;
mod docs;
mod lives;
mod migrations;
mod retry_policy;
