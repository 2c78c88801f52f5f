//! Integration tests: each port's conformance suite over its adapters, and what is
//! particular to one.
#![allow(clippy::unwrap_used)]

mod queue;
