//! What a run did.

use std::time::Duration;

use hookstead_store::relaying::Backlog;

/// What one run of a relay did. Counts are of what was accepted, not of what was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Announced events that became events.
    pub expanded: u64,
    /// The deliveries that these are owed.
    pub deliveries: u64,
    /// Announced events whose key their source had used before.
    pub duplicates: u64,
    /// Announced events that the database refuses and that are tried again later.
    pub set_aside: u64,
    /// Deliveries whose messages the queue took because they were due.
    pub dispatched: u64,
    /// Deliveries whose messages the queue took once more because they were lost.
    pub redispatched: u64,
    /// Messages that the queue did not take; they are sent again.
    pub refused: u64,
    /// Deliveries that were moved to the end of their subscription's pause.
    pub postponed: u64,
    /// Deliveries of disabled subscriptions that were cancelled.
    pub cancelled: u64,
    /// Leases that had run out and were taken away.
    pub reaped: u64,
    /// Dead letters that were announced.
    pub announced: u64,
    /// Reports that the control plane acknowledged.
    pub shipped: u64,
    /// Steps of any phase that failed.
    pub failures: u64,
    /// What was left at the end. `None` where the database could not be asked.
    pub backlog: Option<Backlog>,
}

impl RunReport {
    /// Logs it: two lines that alarms are made from. Ages are in seconds.
    pub fn log(&self) {
        tracing::info!(
            expanded = self.expanded,
            deliveries = self.deliveries,
            duplicates = self.duplicates,
            set_aside = self.set_aside,
            dispatched = self.dispatched,
            redispatched = self.redispatched,
            refused = self.refused,
            postponed = self.postponed,
            cancelled = self.cancelled,
            reaped = self.reaped,
            announced = self.announced,
            shipped = self.shipped,
            failures = self.failures,
            "a run of the relay is over"
        );
        let Some(backlog) = &self.backlog else {
            tracing::warn!("the backlog could not be read at the end of the run");
            return;
        };
        tracing::info!(
            backlog.overdue_s = seconds(backlog.overdue),
            backlog.oldest_undelivered_s = seconds(backlog.oldest_undelivered),
            backlog.waiting = backlog.waiting,
            backlog.scheduled = backlog.scheduled,
            backlog.leased = backlog.leased,
            backlog.outbox = backlog.outbox,
            backlog.oldest_outbox_s = seconds(backlog.oldest_outbox),
            backlog.outbox_failed = backlog.outbox_failed,
            backlog.reports = backlog.reports,
            backlog.notices = backlog.notices,
            "what waits at the end of the run"
        );
    }
}

/// Nothing that waits has the age 0, so that an alarm always has a number.
fn seconds(age: Option<Duration>) -> f64 {
    age.unwrap_or_default().as_secs_f64()
}
