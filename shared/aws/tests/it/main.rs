//! Integration tests: each port's conformance suite over its adapters, and what is
//! particular to one.
#![allow(clippy::unwrap_used)]

mod client;
mod keys;
mod queue;
mod stand_in;
mod targets;

use hookstead_aws::Aws;

/// Clients of the emulator.
async fn emulated() -> Aws {
    let emulator = hookstead_testkit::aws().await;
    Aws::read(|name| emulator.variable(name)).unwrap()
}
