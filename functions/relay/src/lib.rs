//! The relay: moves on whatever waits in the database.
//!
//! It runs for most of a minute, once a minute, and any number of relays may run at
//! once. Its [phases](Phase) are loops of their own that know nothing of each other:
//! one that is slow or fails holds up none of the others, logs its failure once, and
//! goes on by itself after a wait that grows.
//!
//! No transaction is open and no connection is held while anything is sent. A relay
//! that dies at any point loses nothing: what it had marked or taken comes again after
//! a documented time.
//!
//! At most one connection per phase is in use, [`Phase::ALL`] in all; a relay with
//! little to do opens two or three. Idle, it makes about twelve round trips a second:
//!
//! | phase | looks every | round trips |
//! | --- | --- | --- |
//! | expand | 500 ms | 3 |
//! | dispatch | 1 s | 2 |
//! | redispatch | 10 s | 1, and one question to the queue |
//! | tidy | 2 s | 2 |
//! | reap | 1 s | 1 |
//! | announce | 1 s | 1 |
//! | ship | 1 s | 1; none where no control plane is configured |

mod chance;
pub mod config;
mod control_plane;
mod hold;
pub mod lambda;
pub mod logs;
mod panics;
mod phase;
mod phases;
mod relay;
mod report;
mod report_batch;
mod run;
mod sending;
mod trouble;

pub use control_plane::{ControlPlane, MAX_RETRY_AFTER, POST_TIMEOUT};
pub use hold::LONGEST_HOLD;
pub use phase::Phase;
pub use phases::{LOST_AFTER, SHALLOW_QUEUE};
pub use relay::{GRACE, Queues, Relay, RelaySettings};
pub use report::RunReport;
pub use report_batch::{MAX_BATCH_BYTES, MAX_BATCH_REPORTS, report_lines};
