//! Writing down how attempts ended.

use std::collections::HashMap;
use std::time::Duration;

use hookstead_domain::{ErrorClass, SubscriptionId, fails_too_long, pause_after};
use hookstead_store::StoreError;
use hookstead_store::delivering::{Failing, Finish, FinishAnswer, FinishedAttempt};
use tokio::time::Instant;

use crate::ledger::Ended;
use crate::operations::{DisableSubscription, EarlierFailures, PauseSubscription, persist};
use crate::worker::Shared;

/// Reason of a subscription that only failed for too long.
const FAILING: &str = "failing";

/// Reason of a subscription whose destination answered 410.
const GONE: &str = "gone";

impl Shared {
    /// Writes the ends of attempts: one statement, tried until `until`. Says of each
    /// whether it is settled: written, or not ours to write any more.
    pub(crate) async fn write(&self, group: &[&Ended], until: Instant) -> Vec<bool> {
        let mut settled = vec![false; group.len()];
        let mut places = Vec::with_capacity(group.len());
        let mut attempts = Vec::with_capacity(group.len());
        for (place, ended) in group.iter().enumerate() {
            match self.identical(ended, until).await {
                Ok(identical) => {
                    places.push(place);
                    attempts.push(ended.finished(identical));
                }
                Err(error) => unwritten(&error, 1),
            }
        }
        let answers = self.finish(&attempts, until).await;
        let mut failing = HashMap::new();
        for (place, answer) in places.into_iter().zip(answers) {
            let ended = group[place];
            settled[place] = answer.is_some();
            match answer {
                Some(FinishAnswer::Finished { failing: found }) => note(ended, found, &mut failing),
                Some(FinishAnswer::LeaseLost) => lease_lost(ended),
                None => {}
            }
        }
        for (subscription_id, sick) in failing {
            self.treat(subscription_id, sick, until).await;
        }
        settled
    }

    async fn identical(&self, ended: &Ended, until: Instant) -> Result<u32, StoreError> {
        if !ended.counts_refusals() {
            return Ok(1);
        }
        let earlier = EarlierFailures {
            delivery_id: ended.ledger.delivery_id,
            round: ended.ledger.delivery.round,
        };
        let earlier = persist(&self.connections, &earlier, until).await?;
        Ok(ended.identical(earlier))
    }

    /// The answer to each attempt; `None`: it is not written. Where the database refuses
    /// the whole, each is tried alone: one bad row must not cost its neighbours. That
    /// goes for one that lacks the partition of its day, too.
    async fn finish(
        &self,
        attempts: &[FinishedAttempt],
        until: Instant,
    ) -> Vec<Option<FinishAnswer>> {
        if attempts.is_empty() {
            return Vec::new();
        }
        match self.finish_together(attempts, until).await {
            Ok(answers) => answers.into_iter().map(Some).collect(),
            Err(error) if attempts.len() == 1 || concerns_all(&error) => {
                unwritten(&error, attempts.len());
                vec![None; attempts.len()]
            }
            Err(_) => {
                let mut answers = Vec::with_capacity(attempts.len());
                for attempt in attempts {
                    let one = self
                        .finish_together(std::slice::from_ref(attempt), until)
                        .await;
                    if let Err(error) = &one {
                        unwritten(error, 1);
                    }
                    answers.push(one.ok().and_then(|answers| answers.first().copied()));
                }
                answers
            }
        }
    }

    async fn finish_together(
        &self,
        attempts: &[FinishedAttempt],
        until: Instant,
    ) -> Result<Vec<FinishAnswer>, StoreError> {
        let batch = Finish {
            attempts,
            worker_id: &self.settings.worker_id,
            region: self.settings.region.as_deref(),
        };
        persist(&self.connections, &batch, until).await
    }

    /// Pauses or switches off a subscription that failed.
    async fn treat(&self, subscription_id: SubscriptionId, sick: Sick, until: Instant) {
        let result = if let Some(reason) = sick.switched_off {
            let disable = DisableSubscription {
                subscription_id,
                reason,
                // A 410 is said of now, whatever came before.
                seen: sick.seen.filter(|_| reason == FAILING),
            };
            persist(&self.connections, &disable, until)
                .await
                .map(|off| {
                    if off {
                        tracing::warn!(
                            subscription.id = %subscription_id,
                            reason,
                            "a subscription was switched off"
                        );
                    }
                })
        } else if let Some((pause, seen)) = sick.pause() {
            tracing::warn!(
                subscription.id = %subscription_id,
                failures = seen.consecutive_failures,
                pause_s = pause.as_secs(),
                "a subscription fails again and again and is left alone for a while"
            );
            let pause = PauseSubscription {
                subscription_id,
                pause,
                seen,
            };
            persist(&self.connections, &pause, until).await
        } else {
            Ok(())
        };
        if let Err(error) = result {
            // The next failure of it comes to the same.
            tracing::error!(
                subscription.id = %subscription_id,
                error = %error,
                "a failing subscription could not be paused or switched off"
            );
        }
    }
}

/// What a group's failures have come to for one subscription.
#[derive(Clone, Copy, Default)]
struct Sick {
    /// The latest of its failures.
    seen: Option<Failing>,
    failing_for: Duration,
    switched_off: Option<&'static str>,
}

impl Sick {
    fn pause(&self) -> Option<(Duration, Failing)> {
        let seen = self.seen?;
        Some((
            pause_after(seen.consecutive_failures, self.failing_for)?,
            seen,
        ))
    }
}

fn note(ended: &Ended, found: Option<Failing>, failing: &mut HashMap<SubscriptionId, Sick>) {
    let gone = ended.answered.outcome.error() == Some(ErrorClass::Gone);
    if found.is_none() && !gone {
        return;
    }
    let sick = failing.entry(ended.ledger.subscription_id).or_default();
    if let Some(found) = found {
        let now = ended.ledger.clock.now();
        let failing_for = (now - found.first_failure_at)
            .try_into()
            .unwrap_or_default();
        // All of one group have the same: they were counted together.
        sick.seen = Some(found);
        sick.failing_for = sick.failing_for.max(failing_for);
        if fails_too_long(found.first_failure_at, now) {
            sick.switched_off = sick.switched_off.or(Some(FAILING));
        }
    }
    if gone {
        sick.switched_off = Some(GONE);
    }
}

/// Whether an error would meet each attempt alone as it met them together.
fn concerns_all(error: &StoreError) -> bool {
    error.is_transient() && !error.is_missing_partition()
}

fn lease_lost(ended: &Ended) {
    tracing::warn!(
        delivery.id = %ended.ledger.delivery_id,
        lease.id = %ended.ledger.lease_id,
        attempt = ended.ledger.delivery.attempt_count,
        "the end of an attempt was not written: its lease was lost, or it is written already"
    );
}

fn unwritten(error: &StoreError, attempts: usize) {
    tracing::error!(
        error = %error,
        attempts,
        "the ends of attempts could not be written; their leases will run out"
    );
}
