//! A database with a source and subscriptions, queues, and workers' work to do.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{LocalQueue, ReceiveMessages as _};
use hookstead_domain::{
    AttemptRequest, DeadLetterNotice, DeliveryId, ErrorClass, Finish as Ended, Jitter, LeaseId,
    Outcome, QueueMessage, Terms,
};
use hookstead_relay::{ControlPlane, Queues, Relay, RelaySettings, RunReport, config};
use hookstead_store::Connections;
use hookstead_store::delivering::{
    AttemptFacts, Claim, ClaimAnswer, ClaimRequest, Claimed, Finish, FinishAnswer, FinishedAttempt,
    claim, finish,
};
use hookstead_store::relaying::expand_outbox;
use hookstead_testkit::{TestDatabase, role};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) admin: PgConnection,
    worker: PgConnection,
    pub(crate) deliveries: Arc<LocalQueue>,
    pub(crate) dead_letters: Arc<LocalQueue>,
}

/// A database with the source `app` and one subscription, `one`, to everything of it.
pub(crate) async fn world() -> World {
    let database = hookstead_testkit::database().await;
    let admin = database.connect().await;
    let worker = database.connect_as(role::WORKER).await;
    let mut world = World {
        database,
        admin,
        worker,
        deliveries: Arc::new(LocalQueue::new(LONG)),
        dead_letters: Arc::new(LocalQueue::new(LONG)),
    };
    world
        .sql("insert into hookstead.sources (name, kind) values ('app', 'outbox')")
        .await;
    world.subscribe("one").await;
    world
}

impl World {
    /// Connections as the relay signs in.
    pub(crate) fn connections(&self) -> Connections {
        connections(&self.database.url_as(role::RELAY))
    }

    pub(crate) fn queues(&self) -> Queues {
        Queues {
            deliveries: self.deliveries.clone(),
            dead_letters: self.dead_letters.clone(),
        }
    }

    pub(crate) fn relay(&self) -> Relay {
        self.relay_with(self.queues(), None)
    }

    pub(crate) fn relay_with(&self, queues: Queues, control_plane: Option<ControlPlane>) -> Relay {
        let settings = RelaySettings::named("test");
        Relay::new(self.connections(), queues, control_plane, settings)
    }

    pub(crate) async fn sql(&mut self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut self.admin)
            .await
            .unwrap();
    }

    /// One value as text, or "none".
    pub(crate) async fn value(&mut self, sql: &str) -> String {
        value(&mut self.admin, sql).await
    }

    pub(crate) async fn subscribe(&mut self, name: &str) {
        self.sql(&format!(
            "insert into hookstead.subscriptions (name, destination)
             values ('{name}', '{{\"kind\": \"http\", \"url\": \"https://example.com/\"}}')"
        ))
        .await;
    }

    /// Announces events, as an application does.
    pub(crate) async fn publish(&mut self, count: u16) {
        let sql = format!(
            "select count(hookstead.publish('thing.happened', '{{}}')) from generate_series(1, {count})"
        );
        self.sql(&sql).await;
    }

    /// Stores events whose deliveries are due and in no queue.
    pub(crate) async fn owe(&mut self, count: u16) -> Vec<DeliveryId> {
        self.publish(count).await;
        let mut relay = self.database.connect_as(role::RELAY).await;
        while expand_outbox(&mut relay, 1000).await.unwrap().rows() > 0 {}
        self.pending().await
    }

    pub(crate) async fn pending(&mut self) -> Vec<DeliveryId> {
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "select delivery_id from hookstead.live_deliveries
             where state = 'pending' order by delivery_id",
        )
        .fetch_all(&mut self.admin)
        .await
        .unwrap();
        ids.into_iter().map(DeliveryId::from_uuid).collect()
    }

    /// Claims as a worker does. What is stale is left out.
    pub(crate) async fn claim(&mut self, requests: &[AttemptRequest]) -> Vec<Claimed> {
        let requests: Vec<ClaimRequest> = requests
            .iter()
            .map(|request| ClaimRequest {
                delivery_id: request.delivery_id,
                round: request.round,
                attempt: request.attempt,
                lease_id: LeaseId::from_uuid(Uuid::from_u128(fresh())),
            })
            .collect();
        let batch = Claim {
            requests: &requests,
            worker_id: "worker-1",
            max_leases_per_subscription: 10_000,
            repeated: false,
        };
        let answers = claim(&mut self.worker, &batch).await.unwrap();
        let claimed = answers.into_iter().filter_map(|answer| match answer {
            ClaimAnswer::Claimed(claimed) => Some(*claimed),
            _ => None,
        });
        claimed.collect()
    }

    /// Ends attempts a second after their claim, as a worker does.
    pub(crate) async fn end(&mut self, claimed: &[Claimed], outcome: &Outcome) {
        let ends: Vec<_> = claimed.iter().map(|one| ended(one, outcome)).collect();
        let batch = Finish {
            attempts: &ends,
            worker_id: "worker-1",
            region: None,
        };
        for answer in finish(&mut self.worker, &batch).await.unwrap() {
            assert!(matches!(answer, FinishAnswer::Finished { .. }));
        }
    }

    /// Makes the first attempt of every delivery that waits end like this.
    pub(crate) async fn attempt_all(&mut self, outcome: &Outcome) {
        let requests: Vec<_> = self.pending().await.into_iter().map(first).collect();
        let claimed = self.claim(&requests).await;
        assert_eq!(claimed.len(), requests.len());
        self.end(&claimed, outcome).await;
    }

    /// Waits until the server has noticed that a relay is gone: what it had asked for
    /// last may still be under way.
    pub(crate) async fn until_no_relay_is_connected(&mut self) {
        let sql = "select count(*)::text from pg_stat_activity
                   where datname = current_database() and usename = 'hookstead_relay'";
        while self.value(sql).await != "0" {
            tokio::task::yield_now().await;
        }
    }

    /// Runs a relay until the query gives this text.
    pub(crate) async fn run_until_value(
        &self,
        relay: &Relay,
        sql: &str,
        expected: &str,
    ) -> RunReport {
        let mut looking = self.database.connect().await;
        let stop = async {
            while value(&mut looking, sql).await != expected {
                tokio::task::yield_now().await;
            }
        };
        run(relay, stop).await
    }
}

pub(crate) fn connections(url: &str) -> Connections {
    Connections::from_url(url, config::connection_limits()).unwrap()
}

/// Runs a relay until `stop` is done, which it must be long before the run's end.
pub(crate) async fn run(relay: &Relay, stop: impl Future<Output = ()> + Send) -> RunReport {
    let until = Instant::now() + LONG;
    let report = relay.run(until, stop).await;
    assert!(Instant::now() < until, "the run never got there");
    report
}

/// Receives and deletes exactly so many messages.
pub(crate) async fn receive(queue: &LocalQueue, count: usize) -> Vec<QueueMessage> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let received = queue.receive(10, Duration::from_secs(20)).await.unwrap();
        let receipts: Vec<_> = received.iter().map(|one| one.receipt.clone()).collect();
        for deleted in queue.delete(&receipts).await {
            deleted.unwrap();
        }
        let read = received
            .iter()
            .map(|one| QueueMessage::decode(&one.body).unwrap());
        messages.extend(read);
    }
    assert_eq!(messages.len(), count);
    messages
}

/// The same, of messages that ask for attempts.
pub(crate) async fn requests(queue: &LocalQueue, count: usize) -> Vec<AttemptRequest> {
    let messages = receive(queue, count).await.into_iter();
    let mut requests: Vec<_> = messages
        .map(|message| match message {
            QueueMessage::Attempt(request) => request,
            QueueMessage::DeadLetter(_) => panic!("a notice among requests"),
        })
        .collect();
    requests.sort_by_key(|request| request.delivery_id);
    requests
}

/// The same, of notices of dead letters.
pub(crate) async fn notices(queue: &LocalQueue, count: usize) -> Vec<DeadLetterNotice> {
    let messages = receive(queue, count).await.into_iter();
    messages
        .map(|message| match message {
            QueueMessage::DeadLetter(notice) => notice,
            QueueMessage::Attempt(_) => panic!("a request among notices"),
        })
        .collect()
}

pub(crate) fn ids(requests: &[AttemptRequest]) -> Vec<DeliveryId> {
    requests.iter().map(|request| request.delivery_id).collect()
}

/// Asks for the first attempt of a first round.
pub(crate) fn first(delivery_id: DeliveryId) -> AttemptRequest {
    AttemptRequest {
        delivery_id,
        round: 1,
        attempt: 1,
        reason: hookstead_domain::AttemptReason::Due,
    }
}

pub(crate) fn failure() -> Outcome {
    Outcome::Retry {
        error: ErrorClass::ServerError,
        wait: None,
    }
}

async fn value(connection: &mut PgConnection, sql: &str) -> String {
    let value: Option<Option<String>> = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_optional(connection)
        .await
        .unwrap();
    value.flatten().unwrap_or_else(|| "none".to_owned())
}

/// A number that this process gives once.
fn fresh() -> u128 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed).into()
}

fn ended(claimed: &Claimed, outcome: &Outcome) -> FinishedAttempt {
    let now = claimed.claimed_at + Duration::from_secs(1);
    let terms = Terms {
        policy: &claimed.policy,
        jitter: Jitter::default(),
        now,
    };
    let end = Ended {
        lease_id: claimed.lease_id,
        outcome,
        identical: 1,
    };
    FinishedAttempt {
        delivery_id: claimed.delivery_id,
        lease_id: claimed.lease_id,
        expired_only: false,
        next: claimed.delivery.finish(&end, &terms).unwrap(),
        facts: AttemptFacts {
            started_at: claimed.claimed_at,
            ended_at: now,
            latency_ms: Some(12),
            status_code: None,
            outcome: outcome.as_str(),
            error_class: outcome.error(),
            error_detail: None,
            response_sha256: None,
            response_headers: None,
            partner_request_id: None,
        },
        alive: None,
        subject: None,
    }
}
