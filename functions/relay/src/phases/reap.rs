//! Leases that ran out are taken away.

use hookstead_domain::{ErrorClass, Outcome, Terms};
use hookstead_store::delivering::{
    AttemptFacts, ExpiredLease, Finish, FinishAnswer, FinishedAttempt, expired_leases,
};
use hookstead_store::{Operation, StoreError};
use sqlx::PgConnection;

use super::{EVERY_SECOND, Whole};
use crate::chance;
use crate::phase::{Next, Phase, Step};
use crate::relay::Shared;
use crate::run::Run;
use crate::trouble::{PhaseError, chain};

/// Leases of one statement: what a dozen workers hold that die together.
const BATCH: u16 = 100;

/// Most leases of one statement where many cannot be taken away.
const MOST: u32 = 5_000;

pub(crate) struct Reap {
    whole: Whole,
    /// Leases that the last look could not take away: the next one looks past them.
    stuck: u32,
}

impl Reap {
    pub(crate) const fn new(whole: Whole) -> Self {
        Self { whole, stuck: 0 }
    }
}

struct ReadExpired {
    limit: u32,
}

impl Operation for ReadExpired {
    type Output = Vec<ExpiredLease>;

    async fn run(&self, connection: &mut PgConnection) -> Result<Self::Output, StoreError> {
        expired_leases(connection, self.limit).await
    }
}

impl Step for Reap {
    const PHASE: Phase = Phase::Reap;

    async fn step(&mut self, run: &Run<'_>) -> Result<Next, PhaseError> {
        let limit = (u32::from(BATCH) + self.stuck).min(MOST);
        let expired = self.whole.run(&ReadExpired { limit }).await?;
        let ends: Vec<_> = expired.iter().filter_map(end).collect();
        self.stuck = 0;
        if ends.is_empty() {
            return Ok(Next::Wait(EVERY_SECOND));
        }
        let reaped = self.whole.finish(&ends).await?;
        let left = u64::try_from(ends.len()).unwrap_or(u64::MAX) - reaped;
        self.stuck = u32::try_from(left).unwrap_or(MOST);
        run.count(|report| report.reaped += reaped);
        if ends.iter().any(|end| end.next.is_over()) {
            run.wakes.wake(Phase::Announce);
        }
        run.wakes.wake(Phase::Ship);
        // Without this a row that cannot be written would be tried without a pause.
        Ok(match reaped {
            _ if self.stuck > 0 => Next::Wait(EVERY_SECOND),
            0 => Next::Wait(EVERY_SECOND),
            _ => Next::Again,
        })
    }
}

/// What becomes of a lease. `None`: it was extended while we looked.
fn end(expired: &ExpiredLease) -> Option<FinishedAttempt> {
    let terms = Terms {
        policy: &expired.policy,
        jitter: chance::jitter(),
        now: expired.now,
    };
    let next = expired.delivery.reap(expired.lost_before, &terms).ok()?;
    let outcome = Outcome::failed(ErrorClass::WorkerLost, None);
    Some(FinishedAttempt {
        delivery_id: expired.delivery_id,
        lease_id: expired.lease_id,
        expired_only: true,
        next,
        facts: AttemptFacts {
            started_at: expired.started_at,
            ended_at: expired.now.max(expired.started_at),
            latency_ms: None,
            status_code: None,
            outcome: outcome.as_str(),
            error_class: outcome.error(),
            error_detail: None,
            response_sha256: None,
            response_headers: None,
            partner_request_id: None,
        },
        // A worker that died says nothing about the destination.
        alive: None,
        subject: expired.subject.clone(),
    })
}

/// Whether waiting helps. A day without partition is the fault of single rows.
fn passes(error: &StoreError) -> bool {
    error.is_transient() && !error.is_missing_partition()
}

impl Shared {
    /// Writes ends and says how many were written: the others were somebody else's.
    /// Where the database refuses the whole, each is written alone.
    async fn finish(&self, ends: &[FinishedAttempt]) -> Result<u64, StoreError> {
        match self.finish_together(ends).await {
            Err(error) if !passes(&error) && ends.len() > 1 => {
                let mut written = 0;
                for end in ends.chunks(1) {
                    match self.finish_together(end).await {
                        Ok(one) => written += one,
                        Err(error) if passes(&error) => return Err(error),
                        Err(error) => tracing::error!(
                            delivery.id = %end[0].delivery_id,
                            error = chain(&error),
                            "a lost lease cannot be taken away"
                        ),
                    }
                }
                Ok(written)
            }
            answer => answer,
        }
    }

    async fn finish_together(&self, ends: &[FinishedAttempt]) -> Result<u64, StoreError> {
        let batch = Finish {
            attempts: ends,
            worker_id: &self.settings.relay_id,
            region: self.settings.region.as_deref(),
        };
        let answers = self.run(&batch).await?;
        let written = answers
            .iter()
            .filter(|answer| matches!(answer, FinishAnswer::Finished { .. }));
        Ok(u64::try_from(written.count()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_domain::{
        Delivery, DeliveryId, Lease, LeaseId, RetryPolicy, State, SubscriptionId, Timestamp,
    };
    use uuid::Uuid;

    fn expired(expires_at: Timestamp) -> ExpiredLease {
        let policy = RetryPolicy::default();
        let lease_id = LeaseId::from_uuid(Uuid::from_u128(1));
        let lease = Lease {
            lease_id,
            expires_at,
        };
        ExpiredLease {
            delivery_id: DeliveryId::from_uuid(Uuid::from_u128(2)),
            delivery: Delivery {
                attempt_count: 1,
                state: State::Leased(lease),
                ..Delivery::new(&policy, Timestamp::UNIX_EPOCH)
            },
            lease_id,
            policy,
            subscription_id: SubscriptionId::from_uuid(Uuid::from_u128(3)),
            started_at: Timestamp::UNIX_EPOCH,
            now: Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(30),
            lost_before: 0,
            subject: None,
        }
    }

    #[test]
    fn only_a_lease_that_has_run_out_is_taken_away_and_only_if_it_still_has() {
        let ran_out = expired(Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(29));
        let end = end(&ran_out).unwrap();
        assert!(end.expired_only, "a worker may have extended it meanwhile");
        assert_eq!(end.lease_id, ran_out.lease_id);
        assert_eq!(end.alive, None);
        let runs = expired(Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(31));
        assert!(super::end(&runs).is_none());
    }
}
