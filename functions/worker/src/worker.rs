//! One batch from its messages to its answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hookstead_store::delivering::{Claim, ClaimAnswer, ClaimRequest};
use hookstead_store::{Connections, StoreError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::attempt::{self, BatchTime, Done};
use crate::batch::{Batch, Wish};
use crate::chance;
use crate::destination::Destinations;
use crate::ledger::Ended;
use crate::operations::{Rearm, TimedClaim, persist};
use crate::record::{BatchAnswer, QueueRecord};

/// How long ends that are known wait for their neighbours, to be written together.
/// Far below what anybody waits for a retry, and long enough that the answers of
/// healthy destinations, which come within tens of milliseconds, share one commit.
pub const LINGER: Duration = Duration::from_millis(200);

/// How long a claim is tried while the database is away. A restart is over by then;
/// after that the messages go back and come again.
pub const CLAIM_PATIENCE: Duration = Duration::from_secs(8);

/// The part of a batch's time that is kept for writing down how its attempts ended.
pub const FINISH_RESERVE: Duration = Duration::from_secs(5);

/// Heartbeats in the length of a lease: two may fail before it is lost.
pub const HEARTBEATS_PER_LEASE: u32 = 3;

/// What a worker is told about itself and its surroundings.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Who it is, 1 to 256 characters. [`WorkerSettings::named`] makes it unique.
    pub worker_id: String,
    /// Where it is.
    pub region: Option<String>,
    /// For how long the queue hides a message that was received.
    pub visibility_timeout: Duration,
    /// Most deliveries of one subscription that all workers together attempt at once.
    pub max_leases_per_subscription: u32,
    /// How long a claim is tried.
    pub claim_patience: Duration,
    /// The part of a batch's time that is kept for writing down how its attempts ended.
    pub finish_reserve: Duration,
    /// How many times a handler's lease is extended in the length of one.
    pub heartbeats_per_lease: u32,
}

impl WorkerSettings {
    /// The defaults, for a worker of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name: String = name.chars().take(200).collect();
        Self {
            worker_id: format!("{name}/{}", chance::word()),
            region: None,
            visibility_timeout: crate::config::DEFAULT_VISIBILITY_TIMEOUT,
            max_leases_per_subscription: crate::config::DEFAULT_MAX_LEASES_PER_SUBSCRIPTION,
            claim_patience: CLAIM_PATIENCE,
            finish_reserve: FINISH_RESERVE,
            heartbeats_per_lease: HEARTBEATS_PER_LEASE,
        }
    }
}

/// A worker. Clones are the same worker; any number of batches may run at once.
#[derive(Clone, Debug)]
pub struct Worker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connections: Connections,
    pub(crate) destinations: Destinations,
    pub(crate) settings: WorkerSettings,
    pub(crate) stopping: watch::Sender<bool>,
}

impl Worker {
    /// A worker over these connections and destinations.
    #[must_use]
    pub fn new(
        connections: Connections,
        destinations: Destinations,
        settings: WorkerSettings,
    ) -> Self {
        let shared = Shared {
            connections,
            destinations,
            settings,
            stopping: watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Works a batch off, within the time for which the queue hides its messages.
    ///
    /// A message fails only where this worker could not do its part: it cannot be read,
    /// or the database could not be asked. What failed at its destination is no failure
    /// of its message, and neither is one with nothing left to do.
    pub async fn process(&self, records: Vec<QueueRecord>) -> BatchAnswer {
        let deadline = Instant::now() + self.shared.settings.visibility_timeout;
        self.process_by(records, deadline).await
    }

    /// [`Worker::process`] with a time by which the answer must be there. Attempts still
    /// under way when only the reserve for writing is left are broken off, which is no failure.
    pub async fn process_by(&self, records: Vec<QueueRecord>, deadline: Instant) -> BatchAnswer {
        let reserve = self.shared.settings.finish_reserve;
        let attempts_until = deadline.checked_sub(reserve).unwrap_or(deadline);
        let time = BatchTime {
            attempts_until,
            length: attempts_until.saturating_duration_since(Instant::now()),
        };
        let mut batch = Batch::read(records);
        let mut failed: HashSet<String> = batch.unreadable.iter().cloned().collect();
        self.rearm(&mut batch, &mut failed, deadline).await;
        let mut attempts = JoinSet::new();
        for (place, answer) in self
            .claim(&batch.wishes, deadline)
            .await
            .into_iter()
            .enumerate()
        {
            match answer {
                Some((asked_at, ClaimAnswer::Claimed(claimed))) => {
                    let shared = Arc::clone(&self.shared);
                    attempts.spawn(async move {
                        (place, attempt::make(&shared, claimed, asked_at, time).await)
                    });
                }
                Some((_, ClaimAnswer::Postponed(_) | ClaimAnswer::Stale)) => {}
                None => failed.extend(batch.wishes[place].messages.iter().cloned()),
            }
        }
        for place in self.shared.gather(attempts, deadline).await {
            failed.extend(batch.wishes[place].messages.iter().cloned());
        }
        batch.answer(failed)
    }

    /// Makes every batch of this worker break off its attempts, now and later: they are
    /// written down as stopped, which is no failure, and made again by others.
    pub fn stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Who it is.
    #[must_use]
    pub fn worker_id(&self) -> &str {
        &self.shared.settings.worker_id
    }

    /// Begins dead letters anew whose notices came back.
    async fn rearm(&self, batch: &mut Batch, failed: &mut HashSet<String>, deadline: Instant) {
        if batch.notices.is_empty() {
            return;
        }
        let notices: Vec<_> = batch
            .notices
            .iter()
            .map(|notice| (notice.delivery_id, notice.round))
            .collect();
        let until = deadline.min(Instant::now() + self.shared.settings.claim_patience);
        match persist(&self.shared.connections, &Rearm(&notices), until).await {
            Ok(begun) => {
                tracing::info!(
                    notices = notices.len(),
                    begun = begun.len(),
                    "notices of dead letters came back: what was still one begins anew"
                );
                batch.add_begun(begun);
            }
            Err(error) => {
                tracing::error!(error = %error, "dead letters could not begin anew");
                failed.extend(batch.notices.iter().map(|notice| notice.message.clone()));
            }
        }
    }

    /// The answer to each wish; `None`: the database could not be asked. Where it
    /// refuses the whole, each is claimed alone, under the same lease.
    async fn claim(
        &self,
        wishes: &[Wish],
        deadline: Instant,
    ) -> Vec<Option<(Instant, ClaimAnswer)>> {
        if wishes.is_empty() {
            return Vec::new();
        }
        let requests: Vec<_> = wishes.iter().map(request).collect();
        let until = deadline.min(Instant::now() + self.shared.settings.claim_patience);
        match self.claim_together(&requests, until).await {
            Ok((asked_at, answers)) => answers
                .into_iter()
                .map(|answer| Some((asked_at, answer)))
                .collect(),
            Err(error) if error.is_transient() || requests.len() == 1 => {
                tracing::error!(
                    error = %error,
                    deliveries = requests.len(),
                    "deliveries could not be claimed; their messages come again"
                );
                vec![None; requests.len()]
            }
            Err(_) => self.claim_each(&requests, until).await,
        }
    }

    async fn claim_each(
        &self,
        requests: &[ClaimRequest],
        until: Instant,
    ) -> Vec<Option<(Instant, ClaimAnswer)>> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let one = self
                .claim_together(std::slice::from_ref(request), until)
                .await;
            if let Err(error) = &one {
                tracing::error!(
                    error = %error,
                    delivery.id = %request.delivery_id,
                    "a delivery could not be claimed; its message comes again"
                );
            }
            let one = one.ok();
            answers.push(
                one.and_then(|(asked_at, answers)| Some((asked_at, answers.into_iter().next()?))),
            );
        }
        answers
    }

    async fn claim_together(
        &self,
        requests: &[ClaimRequest],
        until: Instant,
    ) -> Result<(Instant, Vec<ClaimAnswer>), StoreError> {
        let claim = TimedClaim::new(Claim {
            requests,
            worker_id: &self.shared.settings.worker_id,
            max_leases_per_subscription: self.shared.settings.max_leases_per_subscription,
            repeated: false,
        });
        persist(&self.shared.connections, &claim, until).await
    }
}

fn request(wish: &Wish) -> ClaimRequest {
    ClaimRequest {
        delivery_id: wish.request.delivery_id,
        round: wish.request.round,
        attempt: wish.request.attempt,
        lease_id: chance::lease_id(),
    }
}

impl Shared {
    /// Writes down how attempts end: all at once when the last has ended, or what has
    /// ended when the linger is over. Gives the places of those that are not written.
    async fn gather(&self, mut attempts: JoinSet<(usize, Done)>, deadline: Instant) -> Vec<usize> {
        let mut lost = Vec::new();
        let mut ended: Vec<(usize, Box<Ended>)> = Vec::new();
        let mut since: Option<Instant> = None;
        loop {
            let linger = since.map(|since| since + LINGER);
            tokio::select! {
                biased;
                joined = attempts.join_next() => match joined {
                    Some(Ok((place, Done::Ended(end)))) => {
                        ended.push((place, end));
                        since = since.or_else(|| Some(Instant::now()));
                    }
                    Some(Ok((_, Done::Recorded | Done::LeaseLost))) => {}
                    // Panics are caught inside of the task, and nobody aborts it.
                    Some(Err(_)) => tracing::error!("a fault of Hookstead: an attempt's task ended"),
                    None => break,
                },
                () = sleep_until(linger.unwrap_or(deadline)), if linger.is_some() => {
                    self.write_group(std::mem::take(&mut ended), deadline, &mut lost).await;
                    since = None;
                }
            }
        }
        self.write_group(ended, deadline, &mut lost).await;
        lost
    }

    async fn write_group(
        &self,
        ended: Vec<(usize, Box<Ended>)>,
        deadline: Instant,
        lost: &mut Vec<usize>,
    ) {
        let group: Vec<&Ended> = ended.iter().map(|(_, end)| &**end).collect();
        let settled = self.write(&group, deadline).await;
        let unsettled = ended.iter().zip(settled).filter(|(_, settled)| !settled);
        lost.extend(unsettled.map(|((place, _), _)| *place));
    }
}
