//! What the relay does with leases that ran out, in small.

use hookstead_domain::{DeliveryId, ErrorClass};
use hookstead_domain::{Jitter, StateName, Terms};
use hookstead_store::delivering::{
    AttemptFacts, Finish, FinishAnswer, FinishedAttempt, expired_leases, finish, rearm,
};
use hookstead_testkit::role;

use super::World;

impl World {
    /// Takes away every lease that has run out.
    pub(crate) async fn reap(&self) {
        let mut relay = self.database.connect_as(role::RELAY).await;
        for expired in expired_leases(&mut relay, 100).await.unwrap() {
            let terms = Terms {
                policy: &expired.policy,
                jitter: Jitter::default(),
                now: expired.now,
            };
            let next = expired.delivery.reap(expired.lost_before, &terms).unwrap();
            let attempt = FinishedAttempt {
                delivery_id: expired.delivery_id,
                lease_id: expired.lease_id,
                expired_only: true,
                next,
                facts: AttemptFacts {
                    started_at: expired.started_at,
                    ended_at: expired.now,
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
                subject: None,
            };
            let batch = Finish {
                attempts: &[attempt],
                worker_id: "relay",
                region: None,
            };
            let answers = finish(&mut relay, &batch).await.unwrap();
            assert_eq!(answers, [FinishAnswer::Finished { failing: None }]);
        }
    }

    /// Begins a delivery anew, as an operator does.
    pub(crate) async fn replay(&self, delivery: DeliveryId, round: u32) {
        let mut admin = self.database.connect_as(role::ADMIN).await;
        let over = [StateName::Succeeded, StateName::DeadLetter];
        let begun = rearm(&mut admin, &[(delivery, round)], &over)
            .await
            .unwrap();
        assert_eq!(begun, [(delivery, round + 1)]);
    }
}
