//! The queue, counting what passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookstead_aws::queue::{LocalQueue, QueueError, QueueFuture, ReceiveMessages, Received};
use tokio::sync::watch;

use crate::cell::number;

/// A queue that counts.
#[derive(Clone)]
pub(crate) struct Counted {
    queue: Arc<LocalQueue>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Tally {
    batches: AtomicUsize,
    messages: AtomicUsize,
    deleted: watch::Sender<usize>,
}

impl Counted {
    pub(crate) fn new(queue: Arc<LocalQueue>) -> Self {
        let tally = Arc::default();
        Self { queue, tally }
    }

    /// Waits until so many messages were deleted.
    pub(crate) async fn deleted(&self, count: usize) -> anyhow::Result<()> {
        let mut deleted = self.tally.deleted.subscribe();
        deleted.wait_for(|deleted| *deleted >= count).await?;
        Ok(())
    }

    /// Messages that one receive gave, on average, where it gave any.
    pub(crate) fn mean_batch(&self) -> f64 {
        let messages = self.tally.messages.load(Ordering::Relaxed);
        number(messages) / number(self.tally.batches.load(Ordering::Relaxed))
    }
}

impl ReceiveMessages for Counted {
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>> {
        Box::pin(async move {
            let received = self.queue.receive(max, wait).await?;
            if !received.is_empty() {
                self.tally.batches.fetch_add(1, Ordering::Relaxed);
                self.tally
                    .messages
                    .fetch_add(received.len(), Ordering::Relaxed);
            }
            Ok(received)
        })
    }

    fn delete<'a>(
        &'a self,
        receipts: &'a [String],
    ) -> QueueFuture<'a, Vec<Result<(), QueueError>>> {
        Box::pin(async move {
            let deleted = self.queue.delete(receipts).await;
            let done = deleted.iter().filter(|one| one.is_ok()).count();
            self.tally.deleted.send_modify(|deleted| *deleted += done);
            deleted
        })
    }
}
