//! Ingest through the real handler, beside pgbench.
fn main() {}
