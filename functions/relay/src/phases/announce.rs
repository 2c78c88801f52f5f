//! Dead letters are announced on the queue of dead letters.

use hookstead_domain::QueueMessage;
use hookstead_store::relaying::{AcknowledgeNotices, ReleaseNotices, TakeNotices};

use super::dispatch::len;
use super::{AFTER_PART, EVERY_SECOND, TAKEN_FOR, Whole};
use crate::phase::{Next, Phase, Step};
use crate::run::Run;
use crate::sending::send;
use crate::trouble::PhaseError;

/// Notices of one statement: ten calls to SQS.
const BATCH: u16 = 100;

pub(crate) struct Announce(pub(crate) Whole);

impl Step for Announce {
    const PHASE: Phase = Phase::Announce;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let take = TakeNotices {
            limit: BATCH,
            taken_for: TAKEN_FOR,
        };
        let notices = self.0.run(&take).await?;
        if notices.is_empty() {
            return Ok(Next::Wait(EVERY_SECOND));
        }
        let sent = send(&*self.0.queues.dead_letters, notices, |notice| {
            QueueMessage::DeadLetter(*notice).encode()
        })
        .await;
        for notice in &sent.accepted {
            tracing::warn!(
                delivery.id = %notice.delivery_id,
                delivery.round = notice.round,
                event.id = %notice.event_id,
                subscription.id = %notice.subscription_id,
                reason = notice.state_reason.as_str(),
                "a delivery was given up"
            );
        }
        run.count(|report| {
            report.announced += len(&sent.accepted);
            report.refused += len(&sent.refused);
        });
        // Those that were sent come first: they must not be sent again.
        self.0.persist(&AcknowledgeNotices(&sent.accepted)).await?;
        let Some(reason) = sent.reason else {
            return Ok(Next::Again);
        };
        self.0.persist(&ReleaseNotices(&sent.refused)).await?;
        if sent.accepted.is_empty() {
            return Err(PhaseError::Refused(reason));
        }
        Ok(Next::Partly {
            code: reason.code().to_owned(),
            wait: AFTER_PART,
        })
    }
}
