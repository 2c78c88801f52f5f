//! Due deliveries through queue, poller, worker and client.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use hookstead_aws::queue::{LocalQueue, QueueDepth as _, SendMessages as _};

use super::{Clock, Measured, Running, Site};

/// Messages in the queue, at most twice so many: enough that no batch is ever short, few
/// enough that the queue is no part of the memory. A worker on Lambda has no queue inside.
const DEPTH: u64 = 500;

/// How often the queue is topped up: it loses a few dozen messages meanwhile.
const TOP_UP_EVERY: Duration = Duration::from_millis(5);

/// Runs in the child.
pub(crate) async fn run(site: &Site, messages: &Path, count: usize) -> anyhow::Result<Measured> {
    let mut messages = BufReader::new(File::open(messages)?).lines();
    let running = Running::start(site)?;
    let clock = Clock::start()?;
    let mut top_up = tokio::time::interval(TOP_UP_EVERY);
    while feed(&running.queue, &mut messages).await? {
        top_up.tick().await;
    }
    let mean_batch = running.finish(count).await?;
    Ok(Measured {
        mean_batch,
        ..clock.stop()?
    })
}

/// Adds messages where there are few; `false` when there are none left.
async fn feed(queue: &LocalQueue, messages: &mut Lines<BufReader<File>>) -> anyhow::Result<bool> {
    if queue.depth().await? >= DEPTH {
        return Ok(true);
    }
    let more: Vec<String> = messages
        .take(usize::try_from(DEPTH)?)
        .collect::<Result<_, _>>()?;
    for sent in queue.send(&more).await {
        sent.context("the queue refused a message")?;
    }
    Ok(!more.is_empty())
}
