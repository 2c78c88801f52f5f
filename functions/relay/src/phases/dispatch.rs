//! Deliveries that are due go into the queue.

use std::time::Duration;

use hookstead_domain::QueueMessage;
use hookstead_store::relaying::{DispatchDue, Due, NextDueIn, Unschedule};

use super::{AFTER_PART, EVERY_SECOND, Whole};
use crate::phase::{Next, Phase, Step};
use crate::relay::Shared;
use crate::run::Run;
use crate::sending::{Sent, send};
use crate::trouble::PhaseError;

/// Deliveries of one statement: it takes 5 to 12 ms for so many, and their messages
/// are fifty calls to SQS.
const BATCH: u16 = 500;

/// Shortest wait before the next look: where something is due and another relay is
/// just taking it, there is no point in asking without a pause.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

pub(crate) struct Dispatch(pub(crate) Whole);

impl Step for Dispatch {
    const PHASE: Phase = Phase::Dispatch;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let due = self.0.run(&DispatchDue { limit: BATCH }).await?;
        if due.is_empty() {
            let next = self.0.run(&NextDueIn).await?;
            let wait = next.unwrap_or(EVERY_SECOND);
            return Ok(Next::Wait(wait.clamp(SHORTEST_WAIT, EVERY_SECOND)));
        }
        let sent = enqueue(&self.0, due).await;
        run.count(|report| report.dispatched += len(&sent.accepted));
        settle(&self.0, run, sent).await
    }
}

/// Sends the messages of deliveries that are marked.
pub(super) async fn enqueue(shared: &Shared, due: Vec<Due>) -> Sent<Due> {
    send(&*shared.queues.deliveries, due, |due| {
        QueueMessage::Attempt(due.request()).encode()
    })
    .await
}

/// Takes back the marks of what the queue did not take, of exactly that.
pub(super) async fn settle(
    shared: &Shared,
    run: &Run<'_>,
    sent: Sent<Due>,
) -> Result<Next, PhaseError> {
    let Some(reason) = sent.reason else {
        return Ok(Next::Again);
    };
    run.count(|report| report.refused += len(&sent.refused));
    shared.persist(&Unschedule(&sent.refused)).await?;
    if sent.accepted.is_empty() {
        return Err(PhaseError::Refused(reason));
    }
    Ok(Next::Partly {
        code: reason.code().to_owned(),
        wait: AFTER_PART,
    })
}

pub(super) fn len<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}
