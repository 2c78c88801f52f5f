//! Test support: a database per test, an AWS emulator, fault injection, log capture. A dev-dependency only.
//!
//! ```no_run
//! # async fn test() {
//! let database = hookstead_testkit::database().await;
//! let receiver = database.connect_as(hookstead_testkit::role::RECEIVER).await;
//! let proxy = hookstead_testkit::FaultProxy::start(&database.url()).await;
//! # drop((receiver, proxy));
//! # }
//! ```
//!
//! Everything here panics where it fails: a test without its ground to stand on is a
//! failed test, and the panic's sentence says what to do.

mod aws;
mod database;
mod keeper;
mod logs;
mod proxy;
pub mod role;
mod template;

pub use aws::{Emulator, aws};
pub use database::{TestDatabase, URL_VARIABLE, database};
pub use logs::LogCapture;
pub use proxy::{Fault, FaultProxy};
