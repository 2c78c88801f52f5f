//! Tests over real sockets and real TLS.
#![allow(clippy::unwrap_used)]

mod bodies;
mod docs;
mod errors;
mod guard;
mod headers;
mod redirects;
mod reuse;
mod server;
mod spellings;
mod support;
mod tls;
mod webhooks;
