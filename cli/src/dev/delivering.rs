//! Worker and relay of `dev`, with a queue inside the process between them.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::keys::Sealer;
use hookstead_aws::queue::LocalQueue;
use hookstead_egress::{AllowList, Egress, EgressSettings};
use hookstead_relay::{ControlPlane, Phase, Queues, Relay, RelaySettings};
use hookstead_secrets::LocalSecrets;
use hookstead_store::{ConnectionLimits, Connections, planned_by_key};
use hookstead_worker::config::DEFAULT_VISIBILITY_TIMEOUT;
use hookstead_worker::destinations::HttpDestination;
use hookstead_worker::handler::{HandlerDestination, Handlers};
use hookstead_worker::{Destinations, Worker, WorkerSettings, poller};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::database::{Database, Role};
use crate::error::{Doing as _, Error};
use crate::project::Project;

/// Batches of ten that are attempted side by side: twice what one destination that
/// hangs can hold (`DEFAULT_MAX_LEASES_PER_SUBSCRIPTION`).
const BATCHES_AT_ONCE: usize = 8;

/// Connections of the worker: claims and finishes take milliseconds each.
const WORKER_CONNECTIONS: usize = 3;

/// Length of one run of the relay, as on Lambda. The next one follows at once.
const RELAY_RUN: Duration = Duration::from_secs(55);

/// Worker and relay, made and not yet running.
pub(super) struct Delivering {
    worker: Worker,
    relay: Relay,
    queue: Arc<LocalQueue>,
}

/// Worker and relay at work.
pub(super) struct Running {
    worker: JoinHandle<()>,
    relay: JoinHandle<()>,
}

impl Delivering {
    pub(super) fn new(
        project: &Project,
        database: &Database,
        sealer: Sealer,
        allowed: AllowList,
    ) -> Result<Self, Error> {
        let settings = EgressSettings {
            allowed,
            ..EgressSettings::default()
        };
        let egress = Egress::new(settings)
            .map_err(std::io::Error::other)
            .doing("cannot make the client for outgoing requests")?;
        // What is received and never deleted goes nowhere: every message of this queue
        // is a hint, and the relay makes up for one that is lost.
        let queue = Arc::new(LocalQueue::new(DEFAULT_VISIBILITY_TIMEOUT));
        let dead_letters = Arc::new(LocalQueue::new(DEFAULT_VISIBILITY_TIMEOUT));
        let queues = Queues {
            deliveries: queue.clone(),
            dead_letters,
        };
        let relay = Relay::new(
            connections(database, Role::Relay, Phase::ALL.len())?,
            queues,
            control_plane(project, &egress)?,
            RelaySettings::named("dev"),
        );
        // `dev` knows no handlers of anybody's: they live in their own worker program.
        let handlers = connections(database, Role::Worker, 1)?;
        let destinations = Destinations::new()
            .with("http", HttpDestination::new(egress, Arc::new(sealer)))
            .with_handlers(HandlerDestination::new(Handlers::new(), handlers));
        let claiming = planned_by_key(database.options_as(Role::Worker)?);
        let worker = Worker::new(
            Connections::new(claiming, limits(WORKER_CONNECTIONS)),
            destinations,
            WorkerSettings::named("dev"),
        );
        Ok(Self {
            worker,
            relay,
            queue,
        })
    }

    /// The queue on which the receiver asks for first attempts.
    pub(super) fn queue(&self) -> Arc<LocalQueue> {
        Arc::clone(&self.queue)
    }

    /// Runs both until `stop` is true.
    pub(super) fn run(self, stop: watch::Receiver<bool>) -> Running {
        let polling = poller::run(self.worker, self.queue, BATCHES_AT_ONCE, stop.clone());
        Running {
            worker: tokio::spawn(polling),
            relay: tokio::spawn(relaying(self.relay, stop)),
        }
    }
}

impl Running {
    /// Waits until both have ended what they had begun.
    pub(super) async fn ended(self) -> Result<(), Error> {
        let (worker, relay) = tokio::join!(self.worker, self.relay);
        for ended in [worker, relay] {
            ended
                .map_err(std::io::Error::other)
                .doing("worker or relay ended by a fault")?;
        }
        Ok(())
    }
}

async fn relaying(relay: Relay, stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let mut stop = stop.clone();
        let stopped = async move {
            // An error means that nobody is left to say it.
            stop.wait_for(|stop| *stop).await.ok();
        };
        let report = relay.run(Instant::now() + RELAY_RUN, stopped).await;
        report.log();
    }
}

/// Where reports go, if the environment says so. Their secret may stand in the folder
/// of the project like those of sources, and a receiver on this machine needs no TLS.
fn control_plane(project: &Project, egress: &Egress) -> Result<Option<ControlPlane>, Error> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = given("HOOKSTEAD_CONTROL_PLANE_URL");
    let secret = given("HOOKSTEAD_CONTROL_PLANE_SECRET");
    let refused = |message: &str| Error::usage("invalid_configuration", message.to_owned());
    match (url, secret) {
        (None, None) => Ok(None),
        (Some(url), Some(secret)) => {
            let secrets = Arc::new(LocalSecrets::new(project.folder()));
            ControlPlane::new(egress.clone(), &url, true, &secret, secrets)
                .map(Some)
                .map_err(|error| refused(&format!("HOOKSTEAD_CONTROL_PLANE_URL: {error}")))
        }
        _ => Err(refused(
            "HOOKSTEAD_CONTROL_PLANE_URL and HOOKSTEAD_CONTROL_PLANE_SECRET go together",
        )),
    }
}

fn connections(database: &Database, role: Role, slots: usize) -> Result<Connections, Error> {
    Ok(Connections::new(database.options_as(role)?, limits(slots)))
}

fn limits(slots: usize) -> ConnectionLimits {
    ConnectionLimits {
        slots,
        ..ConnectionLimits::default()
    }
}
