//! Deliveries to claim and to finish, for the tests of delivering.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookstead_domain::{
    DeliveryId, ErrorClass, EventId, Finish as Ended, Jitter, LeaseId, Outcome, Terms, Timestamp,
};
use hookstead_store::delivering::{
    AttemptFacts, Claim, ClaimAnswer, ClaimRequest, Claimed, Finish, FinishAnswer, FinishedAttempt,
    claim, expired_leases, finish,
};
use hookstead_testkit::role;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::support::{Fixture, event, event_id_at, fixture};

/// A source, subscriptions, and a worker's connection.
pub(crate) struct Owed {
    pub(crate) fixture: Fixture,
    pub(crate) worker: PgConnection,
}

/// A lease that nobody else in this process has.
pub(crate) fn fresh_lease() -> LeaseId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    LeaseId::from_uuid(Uuid::from_u64_pair(NEXT.fetch_add(1, Ordering::Relaxed), 0))
}

pub(crate) fn request(delivery_id: DeliveryId, round: u32, attempt: u32) -> ClaimRequest {
    ClaimRequest {
        delivery_id,
        round,
        attempt,
        lease_id: fresh_lease(),
    }
}

pub(crate) async fn owed() -> Owed {
    let fixture = fixture().await;
    let worker = fixture.database.connect_as(role::WORKER).await;
    Owed { fixture, worker }
}

/// The claimed ones among answers.
pub(crate) fn claimed(answers: Vec<ClaimAnswer>) -> Vec<Claimed> {
    let claimed = answers.into_iter().filter_map(|answer| match answer {
        ClaimAnswer::Claimed(claimed) => Some(*claimed),
        _ => None,
    });
    claimed.collect()
}

/// One word per answer.
pub(crate) fn words(answers: &[ClaimAnswer]) -> Vec<&'static str> {
    let word = |answer: &ClaimAnswer| match answer {
        ClaimAnswer::Claimed(_) => "claimed",
        ClaimAnswer::Postponed(_) => "postponed",
        ClaimAnswer::Stale => "stale",
    };
    answers.iter().map(word).collect()
}

pub(crate) async fn try_claim(
    connection: &mut PgConnection,
    requests: &[ClaimRequest],
) -> Vec<ClaimAnswer> {
    let batch = Claim {
        requests,
        worker_id: "worker-1",
        max_leases_per_subscription: 1000,
        repeated: false,
    };
    claim(connection, &batch).await.unwrap()
}

/// The end of an attempt, by the rules.
pub(crate) fn ended(claimed: &Claimed, outcome: &Outcome, now: Timestamp) -> FinishedAttempt {
    let terms = Terms {
        policy: &claimed.policy,
        jitter: Jitter::new(0.5),
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
            status_code: Some(200),
            outcome: outcome.as_str(),
            error_class: outcome.error(),
            error_detail: None,
            response_sha256: Some([7; 32]),
            response_headers: None,
            partner_request_id: None,
        },
        alive: Some(outcome.error().is_none()),
        subject: None,
    }
}

pub(crate) fn failure() -> Outcome {
    Outcome::Retry {
        error: ErrorClass::ServerError,
        wait: None,
    }
}

pub(crate) async fn write(
    connection: &mut PgConnection,
    attempts: &[FinishedAttempt],
) -> Vec<FinishAnswer> {
    let batch = Finish {
        attempts,
        worker_id: "worker-1",
        region: None,
    };
    finish(connection, &batch).await.unwrap()
}

impl Owed {
    /// Stores one event; gives the deliveries that it is owed as.
    pub(crate) async fn receive(&mut self, key: &str) -> Vec<DeliveryId> {
        let event = event(self.fixture.source, key, b"{\"a\": 1.0}");
        let mut receiver = self.fixture.receiver().await;
        hookstead_store::ingest(&mut receiver, &event)
            .await
            .unwrap();
        self.deliveries_of(event.event_id).await
    }

    /// Stores one event that came at `time`.
    pub(crate) async fn receive_at(&mut self, key: &str, time: Timestamp) -> DeliveryId {
        let mut event = event(self.fixture.source, key, b"{}");
        event.event_id = event_id_at(time);
        event.received_at = time;
        let mut receiver = self.fixture.receiver().await;
        hookstead_store::ingest(&mut receiver, &event)
            .await
            .unwrap();
        self.deliveries_of(event.event_id).await.remove(0)
    }

    async fn deliveries_of(&mut self, event_id: EventId) -> Vec<DeliveryId> {
        let ids: Vec<Uuid> = sqlx::query_scalar(
            "select l.delivery_id from hookstead.live_deliveries l
             join hookstead.subscriptions s using (subscription_id)
             where l.event_id = $1 order by s.name",
        )
        .bind(event_id.as_uuid())
        .fetch_all(&mut self.fixture.admin)
        .await
        .unwrap();
        ids.into_iter().map(DeliveryId::from_uuid).collect()
    }

    /// The first attempt of one delivery, claimed.
    pub(crate) async fn take(&mut self, id: DeliveryId, round: u32, attempt: u32) -> Claimed {
        let answers = try_claim(&mut self.worker, &[request(id, round, attempt)]).await;
        claimed(answers).remove(0)
    }

    /// Ends an attempt a second after its claim.
    pub(crate) async fn end(&mut self, claimed: &Claimed, outcome: &Outcome) -> FinishAnswer {
        let now = claimed.claimed_at + Duration::from_secs(1);
        let end = ended(claimed, outcome, now);
        write(&mut self.worker, &[end]).await.remove(0)
    }

    /// One value as text, or "none".
    pub(crate) async fn value(&mut self, sql: &str) -> String {
        let value: Option<Option<String>> = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_optional(&mut self.fixture.admin)
            .await
            .unwrap();
        value.flatten().unwrap_or_else(|| "none".to_owned())
    }

    /// Makes every lease one that ran out a second ago.
    pub(crate) async fn let_leases_run_out(&mut self) {
        self.fixture
            .run(
                "update hookstead.live_deliveries
                 set lease_expires_at = now() - interval '1 second' where state = 'leased'",
            )
            .await;
    }
}

/// Reads the expired leases and ends them, as the relay does.
pub(crate) async fn reap(owed: &mut Owed) -> Vec<FinishAnswer> {
    let mut relay = owed.fixture.database.connect_as(role::RELAY).await;
    let expired = expired_leases(&mut relay, 100).await.unwrap();
    let ends: Vec<FinishedAttempt> = expired
        .iter()
        .map(|lease| FinishedAttempt {
            delivery_id: lease.delivery_id,
            lease_id: lease.lease_id,
            expired_only: true,
            next: lease
                .delivery
                .reap(
                    lease.lost_before,
                    &Terms {
                        policy: &lease.policy,
                        jitter: Jitter::new(0.5),
                        now: lease.now,
                    },
                )
                .unwrap(),
            facts: AttemptFacts {
                started_at: lease.started_at,
                ended_at: lease.now,
                latency_ms: None,
                status_code: None,
                outcome: "retry",
                error_class: Some(ErrorClass::WorkerLost),
                error_detail: None,
                response_sha256: None,
                response_headers: None,
                partner_request_id: None,
            },
            alive: None,
            subject: lease.subject.clone(),
        })
        .collect();
    write(&mut relay, &ends).await
}

/// One subscription, and its first delivery claimed.
pub(crate) async fn one_claimed(owed: &mut Owed) -> Claimed {
    owed.fixture.subscribe("one").await;
    let id = owed.receive("evt_1").await[0];
    owed.take(id, 1, 1).await
}
