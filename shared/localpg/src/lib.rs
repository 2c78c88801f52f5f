//! Finds or fetches PostgreSQL and runs a server of it, for development, tests and benches.
