//! The relay and its runs.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{Queue, SendMessages};
use hookstead_store::relaying::{Backlog, ReadBacklog};
use hookstead_store::{Connections, Operation, StoreError};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::chance;
use crate::control_plane::ControlPlane;
use crate::phase::{Phase, drive};
use crate::phases::{Announce, Dispatch, Expand, LOST_AFTER, Reap, Redispatch, Ship, Tidy};
use crate::report::RunReport;
use crate::run::{Run, Wakes};

/// How long phases have, after the end of a run, to end what they have begun. What is
/// broken off then comes again by itself, later.
pub const GRACE: Duration = Duration::from_secs(5);

/// Longest that one statement may take. What takes longer waits for a lock or for a
/// server that does not answer.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a statement is tried that ends what was begun: taking a mark back,
/// acknowledging, releasing. Without it the rows come again by themselves, only later.
const PERSISTENCE: Duration = Duration::from_secs(4);

/// Wait between two such tries: a restart or a failover takes seconds.
const PERSISTENCE_PAUSE: Duration = Duration::from_millis(250);

/// Where messages go.
#[derive(Clone)]
pub struct Queues {
    /// The queue that workers read.
    pub deliveries: Arc<dyn Queue>,
    /// The queue of dead letters.
    pub dead_letters: Arc<dyn SendMessages>,
}

/// What a relay is told about itself.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// Who it is, 1 to 256 characters: stands beside attempts that it declared lost.
    pub relay_id: String,
    /// Where it is.
    pub region: Option<String>,
    /// Time in the queue after which a message that nobody took counts as lost.
    pub lost_after: Duration,
}

impl RelaySettings {
    /// The defaults, for a relay of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let name: String = name.chars().take(200).collect();
        Self {
            relay_id: format!("{name}/{}", chance::word()),
            region: None,
            lost_after: LOST_AFTER,
        }
    }
}

/// A relay. Clones are the same relay; any number of runs may be under way at once, in
/// this process and in others.
#[derive(Clone)]
pub struct Relay {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) connections: Connections,
    pub(crate) queues: Queues,
    pub(crate) control_plane: Option<ControlPlane>,
    pub(crate) settings: RelaySettings,
    wakes: Wakes,
}

impl Relay {
    /// A relay over these connections and queues. Without a control plane nothing is
    /// reported, and from the first run on nothing is written down for it.
    ///
    /// Each phase uses at most one connection at a time: [`Phase::ALL`] are enough, and
    /// with fewer slots phases wait for one another.
    #[must_use]
    pub fn new(
        connections: Connections,
        queues: Queues,
        control_plane: Option<ControlPlane>,
        settings: RelaySettings,
    ) -> Self {
        let shared = Shared {
            connections,
            queues,
            control_plane,
            settings,
            wakes: Wakes::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs until `until`, or until `stop` is done. Then every phase ends what it has
    /// begun, within [`GRACE`], and the run says what it did and what is left.
    ///
    /// Dropping the future instead loses nothing either: deliveries that were marked and
    /// not sent are sent by any relay after the time of a lost message, notices and
    /// reports that were taken when their minute is over.
    pub async fn run(&self, until: Instant, stop: impl Future<Output = ()> + Send) -> RunReport {
        let shared = &self.shared;
        let run = Run::new(&shared.wakes);
        {
            let mut phases = pin!(phases(shared, &run));
            let ended = tokio::select! {
                () = &mut phases => true,
                () = sleep_until(until) => false,
                () = stop => false,
            };
            run.end();
            if !ended && timeout(GRACE, phases).await.is_err() {
                tracing::warn!("a run was over before every phase was; the rest comes again");
            }
        }
        let backlog = shared.backlog().await;
        RunReport {
            backlog,
            ..run.report()
        }
    }

    /// Wakes a phase of every run of this relay that waits for its next look: somebody
    /// in the process has made work for it.
    pub fn wake(&self, phase: Phase) {
        self.shared.wakes.wake(phase);
    }

    /// Who it is.
    #[must_use]
    pub fn relay_id(&self) -> &str {
        &self.shared.settings.relay_id
    }
}

async fn phases(shared: &Arc<Shared>, run: &Run<'_>) {
    let of = || Arc::clone(shared);
    tokio::join!(
        drive(Expand(of()), run),
        drive(Dispatch(of()), run),
        drive(Redispatch(of()), run),
        drive(Tidy(of()), run),
        drive(Reap::new(of()), run),
        drive(Announce(of()), run),
        drive(Ship::new(of()), run),
    );
}

impl Shared {
    /// Runs a statement once, bounded in time.
    pub(crate) async fn run<O: Operation>(&self, operation: &O) -> Result<O::Output, StoreError> {
        self.run_within(operation, STATEMENT_TIMEOUT).await
    }

    /// The same with a bound of its own.
    pub(crate) async fn run_within<O: Operation>(
        &self,
        operation: &O,
        limit: Duration,
    ) -> Result<O::Output, StoreError> {
        let ran = timeout(limit, self.connections.run(operation)).await;
        ran.unwrap_or(Err(StoreError::Silent))
    }

    /// Runs a statement that ends what was begun, for a while also without an answer.
    pub(crate) async fn persist<O: Operation>(
        &self,
        operation: &O,
    ) -> Result<O::Output, StoreError> {
        let until = Instant::now() + PERSISTENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.run_within(operation, left).await {
                Err(error) if error.is_transient() && Instant::now() < until => {
                    sleep(PERSISTENCE_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    async fn backlog(&self) -> Option<Backlog> {
        self.run_within(&ReadBacklog, GRACE).await.ok()
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("settings", &self.shared.settings)
            .field("control_plane", &self.shared.control_plane)
            .finish_non_exhaustive()
    }
}
