//! Deliveries of subscriptions that are paused or disabled leave the way.

use std::time::Duration;

use hookstead_store::relaying::{CancelDisabled, PostponePaused};

use super::Whole;
use crate::phase::{Next, Phase, Step};
use crate::run::Run;
use crate::trouble::PhaseError;

/// Deliveries that one statement moves: an update of as many rows of a small table.
const POSTPONE_BATCH: u16 = 1_000;

/// Deliveries that one statement cancels, each with a row of the archive.
const CANCEL_BATCH: u16 = 500;

/// How often it looks. Nothing of these subscriptions is attempted meanwhile: claims
/// refuse it.
const EVERY: Duration = Duration::from_secs(2);

pub(crate) struct Tidy(pub(crate) Whole);

impl Step for Tidy {
    const PHASE: Phase = Phase::Tidy;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let cancel = CancelDisabled {
            limit: CANCEL_BATCH,
        };
        let cancelled = self.0.run(&cancel).await?;
        run.count(|report| report.cancelled += u64::from(cancelled));
        if cancelled > 0 {
            run.wakes.wake(Phase::Ship);
        }
        let postpone = PostponePaused {
            limit: POSTPONE_BATCH,
        };
        let postponed = self.0.run(&postpone).await?;
        run.count(|report| report.postponed += postponed);
        let more = cancelled >= u32::from(CANCEL_BATCH) || postponed >= u64::from(POSTPONE_BATCH);
        Ok(if more { Next::Again } else { Next::Wait(EVERY) })
    }
}
