//! Tests of the store against a real PostgreSQL, each in a database of its own.
#![allow(clippy::unwrap_used)]

mod claiming;
mod claiming_limits;
mod configuration;
mod connections;
mod deliveries;
mod errors;
mod events;
mod finishing;
mod ingest;
mod ingest_faults;
mod matching;
mod migrations;
mod owed;
mod partitions;
mod payloads;
mod privileges;
mod reaping;
mod rearming;
mod relaying_cancel;
mod relaying_dispatch;
mod relaying_expand;
mod relaying_notices;
mod relaying_outbox_races;
mod relaying_plans;
mod relaying_publish;
mod relaying_reports;
mod relaying_support;
mod rights;
mod schema;
mod sql_functions;
mod subscriptions;
mod support;
mod wal;
