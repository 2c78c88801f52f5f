//! Asking for the first attempts right after the commit.
//!
//! For speed alone: the relay finds every delivery by itself. So a kick never
//! changes an answer, takes a bounded time, and its failure is a line in the log.

use std::time::Duration;

use hookstead_aws::queue::SendMessages;
use hookstead_domain::{AttemptReason, AttemptRequest, DeliveryId, QueueMessage};
use tokio::time::timeout;

/// Most deliveries of one event that are asked for: what one call of the queue takes.
/// The relay asks for the others.
pub(crate) const MAX_KICKS: usize = 10;

/// How long the queue may take. Senders wait meanwhile, some for three seconds in all;
/// a call within a region takes some ten milliseconds.
const KICK_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks workers for first attempts.
pub(crate) struct Kick {
    queue: Box<dyn SendMessages>,
}

impl Kick {
    pub(crate) fn new(queue: impl SendMessages + 'static) -> Self {
        Self {
            queue: Box::new(queue),
        }
    }

    /// Asks for the first attempts of new deliveries.
    pub(crate) async fn ask(&self, deliveries: &[DeliveryId]) {
        let messages: Vec<String> = deliveries
            .iter()
            .take(MAX_KICKS)
            .map(|delivery| first_attempt(*delivery))
            .collect();
        if messages.is_empty() {
            return;
        }
        let Ok(answers) = timeout(KICK_TIMEOUT, self.queue.send(&messages)).await else {
            tracing::warn!("the queue took too long; the relay asks instead");
            return;
        };
        let refused: Vec<_> = answers
            .iter()
            .filter_map(|one| one.as_ref().err())
            .collect();
        if let Some(first) = refused.first() {
            tracing::warn!(
                queue.refused = refused.len(),
                error.code = first.code(),
                "the queue did not take all messages; the relay asks instead"
            );
        }
    }
}

fn first_attempt(delivery_id: DeliveryId) -> String {
    let request = AttemptRequest {
        delivery_id,
        round: 1,
        attempt: 1,
        reason: AttemptReason::Kick,
    };
    QueueMessage::Attempt(request).encode()
}
