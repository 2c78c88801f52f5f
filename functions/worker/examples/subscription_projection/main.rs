//! A worker of one's own: every kind of destination that the worker knows, and a handler.
//!
//! Copy this folder, rename it, and write on in `projection.rs`. Built for Lambda it
//! takes the place of the worker in the template. Elsewhere it works off a queue of SQS:
//! set `HOOKSTEAD_QUEUE_URL`, and for an emulator `AWS_ENDPOINT_URL` as well.

mod projection;

use hookstead_aws::Aws;
use hookstead_aws::queue::SqsQueue;
use hookstead_worker::config::Config;
use hookstead_worker::handler::Handlers;
use hookstead_worker::{lambda, logs, poller};
use lambda_runtime::Error;
use std::sync::Arc;
use tokio::sync::watch;

/// Batches at once on a machine: a few dozen attempts, most of which wait.
const BATCHES_AT_ONCE: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start();
    let config = Config::read(|name| std::env::var(name).ok())?;
    let handlers =
        Handlers::new().register(projection::NAME, projection::SubscriptionProjection)?;
    let worker = config.worker(handlers)?;
    let Ok(queue_url) = std::env::var("HOOKSTEAD_QUEUE_URL") else {
        return lambda::run(worker).await;
    };
    let queue = Arc::new(SqsQueue::new(&Aws::from_env()?, queue_url));
    let (stop, stopped) = watch::channel(false);
    let polling = poller::run(worker, queue, BATCHES_AT_ONCE, stopped);
    let stopping = async {
        tokio::signal::ctrl_c().await.ok();
        stop.send_replace(true);
    };
    tokio::join!(polling, stopping);
    Ok(())
}
