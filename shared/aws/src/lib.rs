//! What Hookstead uses of AWS, each behind a port with a local stand-in.
//!
//! [`queue`] carries messages: SQS, and a queue inside the process.

mod cause;
pub mod queue;

pub use cause::Cause;
