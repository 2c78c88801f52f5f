//! Announced events become events with their deliveries.

use std::time::Duration;

use hookstead_store::relaying::ExpandOutbox;

use super::Whole;
use crate::phase::{Next, Phase, Step};
use crate::run::Run;
use crate::trouble::PhaseError;

/// Rows of one transaction: a hundred take some 20 ms.
const BATCH: u16 = 100;

/// How often the outbox is looked at: announcing never notifies, so this is how long an
/// announced event waits at most.
const EVERY: Duration = Duration::from_millis(500);

/// Longest that a batch may take. Where a row's filters run into the limit of a
/// statement, its neighbours are expanded one by one, each within that limit; every
/// row that is dealt with stays so when this ends the batch.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Expand(pub(crate) Whole);

impl Step for Expand {
    const PHASE: Phase = Phase::Expand;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let operation = ExpandOutbox { limit: BATCH };
        let expanded = self.0.run_within(&operation, TIMEOUT).await?;
        run.count(|report| {
            report.expanded += u64::from(expanded.events);
            report.deliveries += u64::from(expanded.deliveries);
            report.duplicates += u64::from(expanded.duplicates);
            report.set_aside += u64::from(expanded.set_aside);
        });
        if expanded.deliveries > 0 {
            run.wakes.wake(Phase::Dispatch);
        }
        if expanded.set_aside > 0 {
            tracing::error!(
                rows = expanded.set_aside,
                "announced events cannot be expanded and were set aside; see docs/outbox.md"
            );
        }
        Ok(match expanded.rows() {
            0 => Next::Wait(EVERY),
            _ => Next::Again,
        })
    }
}
