//! The handler kit: destinations that are code of one's own, inside the worker.
//!
//! A subscription with the destination `{"kind":"handler","name":"NAME"}` is delivered
//! to the [`Handler`] that the worker's binary registered under that name. What a
//! handler writes and the end of its delivery commit together, in one transaction that
//! the delivery's lease guards: an effect in the database happens exactly once, however
//! often messages repeat, workers die or connections break. Effects elsewhere happen at
//! least once, as everywhere; keep them out of handlers, or make them safe to repeat.
//!
//! Events arrive late, twice and out of order. Three defences are here:
//!
//! - [`VersionGuard`]: write only what is newer than what is there, and skip the rest.
//! - [`EntityLock`]: one handler at a time for one entity.
//! - [`Reconcile`]: do not trust the event at all, and fetch the entity as it is now.
//!
//! A worker with handlers is a binary of one's own: copy
//! `functions/worker/examples/subscription_projection` and write on from there. Its
//! database role needs the rights to the handlers' tables, beside those of the worker.

mod contract;
mod destination;
mod entity_lock;
mod erased;
mod event;
mod guarded;
mod reconcile;
mod registry;
mod verdict;
mod version_guard;

pub use contract::Handler;
pub use destination::HandlerDestination;
pub use entity_lock::EntityLock;
pub use event::Event;
pub use reconcile::{Fetched, Reconcile, Reconciling};
pub use registry::{HandlerNameTaken, Handlers};
pub use verdict::{HandlerError, Verdict};
pub use version_guard::{STALE, VersionGuard};
