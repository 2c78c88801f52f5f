//! Promises of the signing crate, held against published vectors and against hostile input.
#![allow(clippy::unwrap_used)]

mod docs;
mod handshakes;
mod headers;
mod kinds;
mod quirks;
mod reports;
mod round_trip;
mod vectors;
mod verdicts;
