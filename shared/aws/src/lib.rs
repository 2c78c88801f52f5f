//! What Hookstead uses of AWS, each behind a port with a local stand-in.
//!
//! [`Aws`] is what every client is made from. [`queue`] carries messages: SQS, and a
//! queue inside the process.

mod call;
mod cause;
mod client;
pub mod queue;

pub use cause::Cause;
pub use client::{Aws, AwsConfigError};
