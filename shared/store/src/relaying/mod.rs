//! What the relay does: announced events become deliveries, due deliveries go into
//! the queue, dead letters and reports go out; and how an application announces.
//!
//! Any number of relays may run at once. Rows are taken with `for update skip
//! locked`, so that none waits for another, and never by "newer than the last one
//! seen", so that a row that commits late is found like any other.

mod backlog;
mod cancel;
mod dispatch;
mod due;
mod expand;
mod notices;
mod outbox_row;
mod postpone;
mod publish;
mod reports;
mod reports_of;

pub use backlog::{Backlog, MAX_COUNT, ReadBacklog, backlog};
pub use cancel::{CancelDisabled, cancel_disabled};
pub use dispatch::{
    DispatchDue, RedispatchLost, Unschedule, dispatch_due, redispatch_lost, unschedule,
};
pub use due::{Due, NextDueIn, next_due_in};
pub use expand::{ExpandOutbox, Expanded, MAX_EXPAND_BYTES, expand_outbox};
pub use notices::{
    AcknowledgeNotices, ReleaseNotices, TakeNotices, acknowledge_notices, release_notices,
    take_notices,
};
pub use postpone::{POSTPONE_SPREAD_S, PostponePaused, postpone_paused};
pub use publish::{PublishRefusal, PublishRequest, publish};
pub use reports::{
    AcknowledgeReports, PendingReports, ReleaseReports, SetReporting, TakeReports,
    acknowledge_reports, pending_reports, release_reports, reporting, take_reports,
};
pub use reports_of::{ReportsOf, reports_of};

/// Makes a type an operation that calls a function of this module.
macro_rules! operation {
    ($operation:ty => $output:ty, |$this:ident, $connection:ident| $call:expr) => {
        impl $crate::connections::Operation for $operation {
            type Output = $output;

            async fn run(
                &self,
                $connection: &mut sqlx::PgConnection,
            ) -> Result<$output, $crate::error::StoreError> {
                let $this = self;
                $call.await
            }
        }
    };
}
use operation;

/// A count from the database. It counts rows, so it is never negative.
fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or_default()
}

/// A small number from a column that a check keeps from being negative.
fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}
