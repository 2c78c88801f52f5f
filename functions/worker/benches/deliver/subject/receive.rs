//! Requests through the receiver, and their deliveries, in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookstead_receiver::{Clock as ReceiverClock, DirectoryLimits, Limits, Receiver};
use hookstead_secrets::{CacheLimits, FetchFuture, SecretProvider, SecretVersion, VersionLabel};
use hookstead_signing::Secret;
use hookstead_store::{ConnectionLimits, Connections};
use tokio::task::JoinSet;

use super::{Clock, Measured, Running, Site};
use crate::process;
use crate::sample::{Provider, SECRET};

/// The source's secret, without a store of secrets.
struct OneSecret;

impl SecretProvider for OneSecret {
    fn fetch<'a>(&'a self, _reference: &'a str) -> FetchFuture<'a> {
        Box::pin(async {
            Ok(vec![SecretVersion {
                label: VersionLabel::Current,
                secret: Secret::new(SECRET).expect("the secret is not blank"),
                not_after: None,
            }])
        })
    }
}

/// When each event was answered, by its number.
type Answered = Arc<[AtomicU64]>;

/// Runs in the child. Those who send are part of it: they keep nothing but a time each.
pub(crate) async fn run(site: &Site, count: usize, senders: usize) -> anyhow::Result<Measured> {
    let running = Running::start(site)?;
    let receiver = receiver(site, senders)?.with_kick(Arc::clone(&running.queue));
    let receiver = Arc::new(receiver);
    let answered: Answered = (0..count).map(|_| AtomicU64::new(0)).collect();
    let next = Arc::new(AtomicU64::new(0));
    let clock = Clock::start()?;
    let mut sending = JoinSet::new();
    for _ in 0..senders {
        sending.spawn(send(
            Arc::clone(&receiver),
            Arc::clone(&answered),
            Arc::clone(&next),
        ));
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    let mean_batch = running.finish(count).await?;
    let measured = clock.stop()?;
    let answered = answered.iter().map(|at| at.load(Ordering::Relaxed));
    Ok(Measured {
        mean_batch,
        answered_us: answered.collect(),
        ..measured
    })
}

fn receiver(site: &Site, slots: usize) -> anyhow::Result<Receiver<OneSecret>> {
    let limits = Limits {
        max_body_bytes: 1024 * 1024,
        store_timeout: Duration::from_secs(10),
        directory: DirectoryLimits::default(),
        secrets: CacheLimits::default(),
    };
    let connection_limits = ConnectionLimits {
        slots,
        ..ConnectionLimits::default()
    };
    let connections = Connections::from_url(&site.receiver_url, connection_limits)?;
    let clock = ReceiverClock::system();
    Ok(Receiver::new(connections, OneSecret, clock, limits, None))
}

async fn send(
    receiver: Arc<Receiver<OneSecret>>,
    answered: Answered,
    next: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let provider = Provider::new()?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(at) = answered.get(usize::try_from(number)?) else {
            return Ok(());
        };
        let answer = receiver.handle(provider.request(number)?).await;
        at.store(process::unix_us(), Ordering::Relaxed);
        let status = answer.status;
        anyhow::ensure!(status == 200, "a request was answered {status}");
    }
}
