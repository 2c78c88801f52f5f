//! Tests over real sockets and real TLS.
#![allow(clippy::unwrap_used)]
