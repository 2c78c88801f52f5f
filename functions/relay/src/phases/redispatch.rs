//! Deliveries whose messages were lost go into the queue again.

use std::time::Duration;

use hookstead_store::relaying::RedispatchLost;

use super::Whole;
use super::dispatch::{enqueue, len, settle};
use crate::phase::{Next, Phase, Step};
use crate::run::Run;
use crate::trouble::PhaseError;

/// Time in the queue after which a message that nobody took counts as lost, where the
/// queue is shallow. A message that a worker holds in a stopped batch, or that waits
/// for its turn behind a few seconds of work, is not taken for lost.
pub const LOST_AFTER: Duration = Duration::from_secs(120);

/// Messages up to which a queue is shallow. Ten batches of ten attempts that take ten
/// seconds each work off 1,200 within the two minutes: in a deeper queue a message may
/// simply wait for its turn, and sending it again would make the queue deeper still.
pub const SHALLOW_QUEUE: u64 = 1_000;

/// Deliveries of one statement.
const BATCH: u16 = 500;

/// Time after which a message counts as lost although the queue is deep: far longer than
/// one waits in a queue that workers keep up with.
const LOST_IN_DEEP_QUEUE: Duration = Duration::from_secs(900);

/// Deliveries of one look then.
const FEW: u16 = 50;

/// How often it looks: little beside the two minutes, and few questions to the queue.
const EVERY: Duration = Duration::from_secs(10);

/// Longest that the queue may take to say how deep it is.
const DEPTH_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Redispatch(pub(crate) Whole);

impl Step for Redispatch {
    const PHASE: Phase = Phase::Redispatch;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let asking = tokio::time::timeout(DEPTH_TIMEOUT, self.0.queues.deliveries.depth()).await;
        let depth = asking.unwrap_or_else(|_| Err(unanswered()))?;
        let deep = depth > SHALLOW_QUEUE;
        let operation = if deep {
            RedispatchLost {
                older_than: LOST_IN_DEEP_QUEUE.max(self.0.settings.lost_after),
                limit: FEW,
            }
        } else {
            RedispatchLost {
                older_than: self.0.settings.lost_after,
                limit: BATCH,
            }
        };
        let lost = self.0.run(&operation).await?;
        if lost.is_empty() {
            return Ok(Next::Wait(EVERY));
        }
        tracing::warn!(
            deliveries = lost.len(),
            "messages of deliveries were lost and are sent again"
        );
        let sent = enqueue(&self.0, lost).await;
        run.count(|report| report.redispatched += len(&sent.accepted));
        match settle(&self.0, run, sent).await? {
            // A deep queue gets no deeper by more than a few at a time.
            Next::Again if deep => Ok(Next::Wait(EVERY)),
            next => Ok(next),
        }
    }
}

fn unanswered() -> hookstead_aws::queue::QueueError {
    hookstead_aws::queue::QueueError::Transient {
        code: "no_answer".to_owned(),
        cause: None,
    }
}
