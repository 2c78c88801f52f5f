//! What Hookstead uses of AWS, each behind a port with a local stand-in.
//!
//! [`Aws`] is what every client is made from. [`queue`] carries messages: SQS, and a
//! queue inside the process. [`keys`] seals the secrets of subscriptions: KMS, and a
//! file of keys. [`targets`] are the destinations of AWS that deliveries go to.

mod call;
mod cause;
mod client;
pub mod keys;
pub mod queue;
pub mod targets;

pub use cause::Cause;
pub use client::{Aws, AwsConfigError};
