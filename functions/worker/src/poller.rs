//! The event source mapping of a single machine: takes messages off a queue.

use std::collections::HashSet;
use std::time::Duration;

use hookstead_aws::queue::{MAX_ENTRIES, MAX_WAIT, ReceiveMessages, Received};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::record::QueueRecord;
use crate::worker::Worker;

/// Wait after the queue could not be read. It is asked again for as long as it takes.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

/// Works off a queue, up to `batches_at_once` batches of up to ten messages side by
/// side, until `stop` is true or its sender is gone. What succeeded is deleted; what
/// failed comes again when its visibility timeout has passed. An idle queue is asked
/// with long waits, and a message is taken as soon as it arrives.
///
/// When it stops, attempts under way are broken off and written down, and it returns
/// when that is done. Dropping it leaves them to their leases.
///
/// A destination that hangs can hold as many batches as its deliveries are leased at
/// once, a tenth of `max_leases_per_subscription`: `batches_at_once` should be at least
/// twice that.
pub async fn run<Q>(worker: Worker, queue: Q, batches_at_once: usize, stop: watch::Receiver<bool>)
where
    Q: ReceiveMessages + Clone + 'static,
{
    let mut batches = JoinSet::new();
    let mut stopping = stop.clone();
    loop {
        while batches.len() >= batches_at_once.max(1) {
            tokio::select! {
                _ = batches.join_next() => {}
                () = stopped(&mut stopping) => break,
            }
        }
        let received = tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            received = queue.receive(MAX_ENTRIES, MAX_WAIT) => received,
        };
        match received {
            Ok(received) if received.is_empty() => {}
            Ok(received) => {
                batches.spawn(work(worker.clone(), queue.clone(), received));
            }
            Err(error) => {
                tracing::error!(error = %error, "the queue cannot be read; it is tried again");
                tokio::select! {
                    () = sleep(PAUSE_AFTER_ERROR) => {}
                    () = stopped(&mut stopping) => break,
                }
            }
        }
        while batches.try_join_next().is_some() {}
    }
    worker.stop();
    while batches.join_next().await.is_some() {}
}

/// Ends when `stop` is true, or nobody could make it so any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Either way there is nothing to wait for any more.
    stop.wait_for(|stop| *stop).await.ok();
}

async fn work<Q: ReceiveMessages>(worker: Worker, queue: Q, received: Vec<Received>) {
    let records = received.iter().filter_map(|message| {
        let record = QueueRecord::new(message.message_id.clone(), message.body.clone());
        record.ok()
    });
    let answer = worker.process(records.collect()).await;
    let failures: HashSet<String> = answer.failures.into_iter().collect();
    let receipts: Vec<String> = received
        .into_iter()
        .filter(|message| !message.message_id.is_empty() && !failures.contains(&message.message_id))
        .map(|message| message.receipt)
        .collect();
    let deleted = queue.delete(&receipts).await;
    let kept = deleted.iter().filter(|deleted| deleted.is_err()).count();
    if kept > 0 {
        // They come again, and find nothing to do.
        tracing::warn!(
            messages = kept,
            "messages could not be deleted from the queue"
        );
    }
}
