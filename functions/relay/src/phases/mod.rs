//! The phases, one by one.

mod announce;
mod dispatch;
mod expand;
#[cfg(test)]
mod idle;
mod reap;
mod redispatch;
mod ship;
mod tidy;

pub(crate) use announce::Announce;
pub(crate) use dispatch::Dispatch;
pub(crate) use expand::Expand;
pub(crate) use reap::Reap;
pub(crate) use redispatch::Redispatch;
pub use redispatch::{LOST_AFTER, SHALLOW_QUEUE};
pub(crate) use ship::Ship;
pub(crate) use tidy::Tidy;

use std::sync::Arc;
use std::time::Duration;

use crate::relay::Shared;

/// How often a phase looks for what nobody tells it about. With it what others wrote
/// is noticed within a second, for one small statement a second.
const EVERY_SECOND: Duration = Duration::from_secs(1);

/// Wait after a queue took only a part of a batch: short, because it does take some.
const AFTER_PART: Duration = Duration::from_millis(250);

/// How long notices and reports that were taken belong to whoever took them: longer
/// than all of its sending takes. A relay that dies delays them by no more.
const TAKEN_FOR: Duration = Duration::from_secs(60);

type Whole = Arc<Shared>;
