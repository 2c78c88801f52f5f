//! What is measured, each in a process of its own.

pub(crate) mod client;
mod counted;
pub(crate) mod deliver;
pub(crate) mod receive;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::keys::{KeyFile, Sealer};
use hookstead_aws::queue::LocalQueue;
use hookstead_egress::{Egress, EgressSettings};
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_worker::destinations::HttpDestination;
use hookstead_worker::{Destinations, Worker, WorkerSettings, poller};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use self::counted::Counted;
use crate::process;

/// For how long the queue hides a message: as in production.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(360);

/// As many at once as an operator of one busy destination would allow.
const MAX_LEASES: u32 = 10_000;

/// How long a cell may take. It takes seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where everything is, and how much of it there is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    pub(crate) worker_url: String,
    pub(crate) receiver_url: String,
    pub(crate) key_file: PathBuf,
    /// Batches that the poller works off at once.
    pub(crate) batches: usize,
    /// Connections of the worker.
    pub(crate) connections: usize,
}

/// The subscription's destination and its sealed secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub(crate) subscription_id: Uuid,
    pub(crate) bytes: Vec<u8>,
    pub(crate) key_id: String,
    pub(crate) destination: serde_json::Value,
}

/// What a measured process says in the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// When it began, in Unix microseconds.
    pub(crate) began_us: u64,
    pub(crate) seconds: f64,
    /// Processor time of its one thread.
    pub(crate) own_us: f64,
    pub(crate) resident_kib: u64,
    pub(crate) peak_kib: u64,
    pub(crate) mean_batch: f64,
    /// Of each attempt, where it made them itself.
    pub(crate) latencies_ms: Vec<f64>,
    /// When each event was answered, in Unix microseconds.
    pub(crate) answered_us: Vec<u64>,
}

impl Site {
    fn http(&self) -> anyhow::Result<HttpDestination> {
        let egress = Egress::new(EgressSettings {
            allowed: "127.0.0.0/8".parse()?,
            ..EgressSettings::default()
        })?;
        let sealer = Sealer::new(KeyFile::new(&self.key_file));
        Ok(HttpDestination::new(egress, Arc::new(sealer)))
    }

    fn worker(&self) -> anyhow::Result<Worker> {
        let limits = ConnectionLimits {
            slots: self.connections,
            ..ConnectionLimits::default()
        };
        let connections = Connections::from_url_by_key(&self.worker_url, limits)?;
        let destinations = Destinations::new().with("http", self.http()?);
        let settings = WorkerSettings {
            visibility_timeout: VISIBILITY_TIMEOUT,
            max_leases_per_subscription: MAX_LEASES,
            ..WorkerSettings::named("bench")
        };
        Ok(Worker::new(connections, destinations, settings))
    }
}

/// A poller and its worker at work on a queue of this process.
struct Running {
    queue: Arc<LocalQueue>,
    counted: Counted,
    stop: watch::Sender<bool>,
    poller: JoinHandle<()>,
}

impl Running {
    fn start(site: &Site) -> anyhow::Result<Self> {
        let queue = Arc::new(LocalQueue::new(VISIBILITY_TIMEOUT));
        let counted = Counted::new(Arc::clone(&queue));
        let (stop, stopped) = watch::channel(false);
        let worker = site.worker()?;
        let poller = tokio::spawn(poller::run(worker, counted.clone(), site.batches, stopped));
        Ok(Self {
            queue,
            counted,
            stop,
            poller,
        })
    }

    /// Waits until so many messages are done with, and stops.
    async fn finish(self, count: usize) -> anyhow::Result<f64> {
        tokio::time::timeout(PATIENCE, self.counted.deleted(count)).await??;
        self.stop.send_replace(true);
        self.poller.await?;
        Ok(self.counted.mean_batch())
    }
}

/// The clock of a cell: wall, processor, and memory at the end.
struct Clock {
    began_us: u64,
    began: std::time::Instant,
    own: Duration,
}

impl Clock {
    fn start() -> anyhow::Result<Self> {
        Ok(Self {
            began_us: process::unix_us(),
            began: std::time::Instant::now(),
            own: process::thread_time()?,
        })
    }

    fn stop(&self) -> anyhow::Result<Measured> {
        let seconds = self.began.elapsed().as_secs_f64();
        let own = process::thread_time()?.saturating_sub(self.own);
        let (resident_kib, peak_kib) = process::memory_kib()?;
        Ok(Measured {
            began_us: self.began_us,
            seconds,
            own_us: own.as_secs_f64() * 1e6,
            resident_kib,
            peak_kib,
            ..Measured::default()
        })
    }
}
