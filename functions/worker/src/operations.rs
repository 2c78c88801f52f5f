//! Operations of the store as values, and how often they are tried.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookstead_domain::{DeliveryId, FailureKey, SubscriptionId};
use hookstead_store::delivering::{
    Claim, ClaimAnswer, Failing, claim, disable_failing_subscription, disable_subscription,
    earlier_failures, pause_subscription, rearm_dead_letters,
};
use hookstead_store::{Connections, Operation, StoreError};
use sqlx::PgConnection;
use tokio::time::{Instant, sleep, timeout};

/// Longest that one statement of the worker's may take. A batch is a few dozen rows by
/// their keys; what takes longer waits for a lock or a server that does not answer.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Wait before an operation is tried again that failed for the moment: a restart or a
/// failover takes seconds, and neither gets faster by being asked more often.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs an operation until it has an answer, fails for good, or `until` has come. A
/// partition that is missing is not waited for: making it takes longer than any batch.
///
/// # Errors
///
/// Those of the last try.
pub(crate) async fn persist<O: Operation>(
    connections: &Connections,
    operation: &O,
    until: Instant,
) -> Result<O::Output, StoreError> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let tried = timeout(left.min(STATEMENT_TIMEOUT), connections.run(operation)).await;
        match tried.unwrap_or(Err(StoreError::Silent)) {
            Err(error) if passes_soon(&error) && Instant::now() + PAUSE < until => {
                sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

fn passes_soon(error: &StoreError) -> bool {
    error.is_transient() && !error.is_missing_partition()
}

/// A claim, with when it was sent: the clock of its attempts starts there.
pub(crate) struct TimedClaim<'a> {
    claim: Claim<'a>,
    /// Whether it was sent before: that one may still be under way at the server.
    sent: AtomicBool,
}

impl<'a> TimedClaim<'a> {
    pub(crate) fn new(claim: Claim<'a>) -> Self {
        let sent = AtomicBool::new(false);
        Self { claim, sent }
    }
}

impl Operation for TimedClaim<'_> {
    type Output = (Instant, Vec<ClaimAnswer>);

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        let asked_at = Instant::now();
        let batch = Claim {
            repeated: self.sent.swap(true, Ordering::Relaxed),
            ..self.claim
        };
        Ok((asked_at, claim(connection, &batch).await?))
    }
}

pub(crate) struct Rearm<'a>(pub(crate) &'a [(DeliveryId, u32)]);

impl Operation for Rearm<'_> {
    type Output = Vec<(DeliveryId, u32)>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        rearm_dead_letters(connection, self.0).await
    }
}

pub(crate) struct EarlierFailures {
    pub(crate) delivery_id: DeliveryId,
    pub(crate) round: u32,
}

impl Operation for EarlierFailures {
    type Output = Vec<Option<FailureKey>>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        earlier_failures(connection, self.delivery_id, self.round).await
    }
}

pub(crate) struct PauseSubscription {
    pub(crate) subscription_id: SubscriptionId,
    pub(crate) pause: Duration,
    pub(crate) seen: Failing,
}

impl Operation for PauseSubscription {
    type Output = ();

    async fn run(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        pause_subscription(connection, self.subscription_id, self.pause, &self.seen).await
    }
}

pub(crate) struct DisableSubscription {
    pub(crate) subscription_id: SubscriptionId,
    pub(crate) reason: &'static str,
    /// What it is switched off for, where that is its failures.
    pub(crate) seen: Option<Failing>,
}

impl Operation for DisableSubscription {
    type Output = bool;

    async fn run(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        let (id, reason) = (self.subscription_id, self.reason);
        match &self.seen {
            Some(seen) => disable_failing_subscription(connection, id, reason, seen).await,
            None => disable_subscription(connection, id, reason).await,
        }
    }
}
