//! Reports go to the control plane.

use hookstead_domain::ReportId;
use hookstead_store::relaying::{AcknowledgeReports, ReleaseReports, SetReporting, TakeReports};

use super::dispatch::len;
use super::{EVERY_SECOND, TAKEN_FOR, Whole};
use crate::chance;
use crate::control_plane::{ControlPlane, NotTaken};
use crate::phase::{Next, Phase, Step};
use crate::report_batch::{MAX_BATCH_BYTES, MAX_BATCH_REPORTS, ReportBatch, batches};
use crate::run::Run;
use crate::trouble::PhaseError;

pub(crate) struct Ship {
    shared: Whole,
    /// Whether the database knows if anybody is told.
    switched: bool,
}

impl Ship {
    pub(crate) fn new(shared: Whole) -> Self {
        Self {
            shared,
            switched: false,
        }
    }
}

impl Step for Ship {
    const PHASE: Phase = Phase::Ship;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let shared = &self.shared;
        if !self.switched {
            let on = shared.control_plane.is_some();
            shared.run(&SetReporting(on)).await?;
            self.switched = true;
        }
        let Some(control_plane) = &shared.control_plane else {
            return Ok(Next::Done);
        };
        if let Some(left) = control_plane.hold.left() {
            return Ok(Next::Hold(left));
        }
        // Before anything is taken: without a secret nothing can be sent.
        let versions = control_plane.versions().await;
        let versions = versions.map_err(PhaseError::Secret)?;
        let take = TakeReports {
            limit: MAX_BATCH_REPORTS,
            taken_for: TAKEN_FOR,
        };
        let reports = shared.run(&take).await?;
        if reports.is_empty() {
            return Ok(Next::Wait(EVERY_SECOND));
        }
        let batches = batches(&reports, MAX_BATCH_BYTES);
        for (place, batch) in batches.iter().enumerate() {
            if let Err(not_taken) = control_plane.post(batch, &versions).await {
                return self
                    .release(control_plane, &batches[place..], not_taken)
                    .await;
            }
            control_plane.hold.succeeded();
            shared.persist(&AcknowledgeReports(&batch.reports)).await?;
            run.count(|report| report.shipped += len(&batch.reports));
        }
        Ok(Next::Again)
    }
}

impl Ship {
    /// Gives back what was not taken, and leaves the control plane alone for a while.
    async fn release(
        &self,
        control_plane: &ControlPlane,
        left: &[ReportBatch],
        not_taken: NotTaken,
    ) -> Result<Next, PhaseError> {
        control_plane.hold.failed(not_taken.wait, chance::jitter());
        let reports: Vec<ReportId> = left
            .iter()
            .flat_map(|batch| batch.reports.iter().copied())
            .collect();
        self.shared.persist(&ReleaseReports(&reports)).await?;
        Err(not_taken.error.into())
    }
}
