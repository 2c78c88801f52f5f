//! What a process is that was started to be killed: a worker or a relay, put together as
//! the real ones are, and nothing else.

mod handlers;

use std::env::var;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::Aws;
use hookstead_aws::queue::{QueueError, QueueFuture, ReceiveMessages, Received, SqsQueue};
use hookstead_egress::{Egress, EgressSettings};
use hookstead_relay::{ControlPlane, Queues, Relay, RelaySettings};
use hookstead_secrets::LocalSecrets;
use hookstead_store::Connections;
use hookstead_worker::poller;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;

/// The variable that makes this program a worker or a relay.
pub(crate) const ROLE: &str = "HOOKSTEAD_SOAK_ROLE";

/// What it logs.
pub(crate) const LOG: &str = "HOOKSTEAD_SOAK_LOG";

/// Time in the queue after which the relay takes a message for lost, in milliseconds.
pub(crate) const LOST_AFTER_MS: &str = "HOOKSTEAD_SOAK_LOST_AFTER_MS";

/// Where reports go. Unencrypted, which no configuration of the relay allows.
pub(crate) const CONTROL_PLANE: &str = "HOOKSTEAD_SOAK_CONTROL_PLANE";

/// The name of the test that becomes the process.
pub(crate) const TEST: &str = "child::a_process_that_was_told_its_role_plays_it_until_it_is_killed";

/// Batches of ten that a worker has under way at once.
const BATCHES_AT_ONCE: usize = 4;

/// Longest wait of one receive.
const LONGEST_RECEIVE: Duration = Duration::from_secs(1);

/// Length of a relay's run, as of one invocation of its schedule.
const RUN_LENGTH: Duration = Duration::from_secs(55);

#[test]
fn a_process_that_was_told_its_role_plays_it_until_it_is_killed() {
    let Ok(role) = var(ROLE) else {
        return;
    };
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_env_filter(EnvFilter::new(var(LOG).unwrap()))
        .with_writer(std::io::stderr)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    hookstead_worker::logs::hide_panics();
    // One thread, as in a Lambda function.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    std::thread::spawn(|| {
        // The input ends with the parent, in whatever way that ends.
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(0);
    });
    runtime.block_on(play(&role));
}

async fn play(role: &str) {
    match role {
        "worker" => work().await,
        "relay" => relay().await,
        other => panic!("there is no role {other}"),
    }
}

async fn work() {
    let config = hookstead_worker::config::Config::read(|name| var(name).ok()).unwrap();
    let worker = config.worker(handlers::all()).unwrap();
    let url = var("HOOKSTEAD_DELIVERIES_QUEUE_URL").unwrap();
    let queue = Impatient(SqsQueue::new(&Aws::from_env().unwrap(), url));
    let never = watch::Sender::new(false);
    poller::run(worker, queue, BATCHES_AT_ONCE, never.subscribe()).await;
}

/// A queue that is asked with short waits. The emulator does not notice that a client
/// was killed, and gives messages to its last receive for as long as that waits.
#[derive(Clone)]
struct Impatient(SqsQueue);

impl ReceiveMessages for Impatient {
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>> {
        self.0.receive(max, wait.min(LONGEST_RECEIVE))
    }

    fn delete<'a>(
        &'a self,
        receipts: &'a [String],
    ) -> QueueFuture<'a, Vec<Result<(), QueueError>>> {
        self.0.delete(receipts)
    }
}

async fn relay() {
    let config = hookstead_relay::config::Config::read(|name| var(name).ok()).unwrap();
    let limits = hookstead_relay::config::connection_limits();
    let connections = Connections::from_url(&config.database_url, limits).unwrap();
    let queues = Queues {
        deliveries: Arc::new(SqsQueue::new(&config.aws, &config.deliveries_queue_url)),
        dead_letters: Arc::new(SqsQueue::new(&config.aws, &config.dead_letter_queue_url)),
    };
    let lost_after = var(LOST_AFTER_MS).unwrap().parse().unwrap();
    let settings = RelaySettings {
        lost_after: Duration::from_millis(lost_after),
        ..RelaySettings::named(&config.name)
    };
    let control_plane = var(CONTROL_PLANE)
        .ok()
        .map(|url| control_plane(&config, url));
    let relay = Relay::new(connections, queues, control_plane, settings);
    loop {
        let until = Instant::now() + RUN_LENGTH;
        relay.run(until, std::future::pending()).await.log();
    }
}

fn control_plane(config: &hookstead_relay::config::Config, url: String) -> ControlPlane {
    let settings = EgressSettings {
        allowed: config.allow_private.clone(),
        ..EgressSettings::default()
    };
    let egress = Egress::new(settings).unwrap();
    let secrets = Arc::new(LocalSecrets::new(&config.secrets_dir));
    ControlPlane::new(egress, url, true, "file:control-plane", secrets).unwrap()
}
