//! Tests of the store against a real PostgreSQL, each in a database of its own.
#![allow(clippy::unwrap_used)]

mod configuration;
mod connections;
mod errors;
mod events;
mod ingest;
mod ingest_faults;
mod matching;
mod migrations;
mod partitions;
mod payloads;
mod privileges;
mod rights;
mod schema;
mod sql_functions;
mod support;
mod wal;
