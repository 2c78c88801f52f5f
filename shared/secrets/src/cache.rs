//! The cache in front of a provider.
//!
//! Time comes in as an argument and is wall-clock time: the monotonic clock of
//! a frozen execution environment may stand still, and a revoked secret must
//! not outlive its minute because of that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hookstead_domain::is_recent;
use hookstead_signing::Secret;
use time::{Duration, OffsetDateTime};
use tokio::sync::Mutex as AsyncMutex;

use crate::provider::{FetchError, Offered, SecretProvider, SecretVersion};

/// How long the cache answers from memory.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    /// Age up to which versions are used without asking.
    pub fresh_for: Duration,
    /// Age up to which they are still used while the provider cannot be reached.
    pub stale_for: Duration,
    /// Time between two fetches that a mismatch asks for.
    pub refetch_after: Duration,
    /// Time after a failed fetch during which its outcome stands.
    pub retry_after: Duration,
}

impl Default for CacheLimits {
    /// A revocation promises to hold everywhere within 60 s, which the 45 s of
    /// freshness plus one fetch keep. Ten minutes of staleness ride out an
    /// ordinary outage of the store of secrets. Thirty seconds between fetches
    /// that a mismatch asks for, and five after a failure, bound what a storm
    /// of bad requests can cost.
    fn default() -> Self {
        Self {
            fresh_for: Duration::seconds(45),
            stale_for: Duration::minutes(10),
            refetch_after: Duration::seconds(30),
            retry_after: Duration::seconds(5),
        }
    }
}

/// What is known of one reference.
#[derive(Default)]
struct Entry {
    known: Option<Known>,
    /// When the provider was last asked, successfully or not.
    asked_at: Option<OffsetDateTime>,
    /// How the last fetch failed, if it did.
    failure: Option<Arc<FetchError>>,
}

struct Known {
    versions: Arc<[SecretVersion]>,
    read_at: OffsetDateTime,
}

impl Entry {
    /// The known versions, if they were read less than `limit` before `now`.
    fn younger_than(&self, limit: Duration, now: OffsetDateTime) -> Option<Arc<[SecretVersion]>> {
        let known = self.known.as_ref()?;
        is_recent(known.read_at, limit, now).then(|| Arc::clone(&known.versions))
    }

    fn was_asked_within(&self, limit: Duration, now: OffsetDateTime) -> bool {
        self.asked_at.is_some_and(|at| is_recent(at, limit, now))
    }
}

type Slot = Arc<AsyncMutex<Entry>>;

/// Remembers the versions of each secret for a short while.
///
/// One fetch per reference is in flight at a time; whoever else asks waits for it.
pub struct SecretCache<P> {
    provider: P,
    limits: CacheLimits,
    slots: Mutex<HashMap<String, Slot>>,
}

impl<P: SecretProvider> SecretCache<P> {
    /// Puts a cache in front of `provider`.
    pub fn new(provider: P, limits: CacheLimits) -> Self {
        Self {
            provider,
            limits,
            slots: Mutex::default(),
        }
    }

    /// The versions under `reference`, from memory while they are fresh.
    ///
    /// # Errors
    ///
    /// The provider's, where memory holds nothing that may still be used.
    pub async fn get(
        &self,
        reference: &str,
        now: OffsetDateTime,
    ) -> Result<Arc<[SecretVersion]>, Arc<FetchError>> {
        let slot = self.slot(reference);
        let mut entry = slot.lock().await;
        if let Some(versions) = entry.younger_than(self.limits.fresh_for, now) {
            return Ok(versions);
        }
        let failed_just_now =
            entry.failure.is_some() && entry.was_asked_within(self.limits.retry_after, now);
        if !failed_just_now {
            self.fetch_into(&mut entry, reference, now).await;
        }
        self.decide(&entry, now)
    }

    /// Reads the versions again because none of the known ones matched.
    ///
    /// `None` where the provider was asked too recently, or where it failed: the
    /// decision then stands on what was known.
    pub async fn get_newer(
        &self,
        reference: &str,
        now: OffsetDateTime,
    ) -> Option<Arc<[SecretVersion]>> {
        let slot = self.slot(reference);
        let mut entry = slot.lock().await;
        if entry.was_asked_within(self.limits.refetch_after, now) {
            return None;
        }
        self.fetch_into(&mut entry, reference, now).await;
        match &entry.failure {
            None => entry
                .known
                .as_ref()
                .map(|known| Arc::clone(&known.versions)),
            Some(_) => None,
        }
    }

    /// Offers a secret to the provider, see [`SecretProvider::offer`]. A kept one
    /// is used from the next request on.
    ///
    /// # Errors
    ///
    /// The provider's.
    pub async fn offer(&self, reference: &str, secret: &Secret) -> Result<Offered, FetchError> {
        let slot = self.slot(reference);
        let mut entry = slot.lock().await;
        let offered = self.provider.offer(reference, secret).await?;
        if offered == Offered::Kept {
            *entry = Entry::default();
        }
        Ok(offered)
    }

    fn slot(&self, reference: &str) -> Slot {
        // A panic elsewhere cannot leave the map half-changed, so a poisoned lock is still good.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.get(reference) {
            Some(slot) => Arc::clone(slot),
            None => Arc::clone(slots.entry(reference.to_owned()).or_default()),
        }
    }

    async fn fetch_into(&self, entry: &mut Entry, reference: &str, now: OffsetDateTime) {
        let fetched = self.provider.fetch(reference).await;
        entry.asked_at = Some(now);
        match fetched {
            Ok(versions) => {
                entry.failure = None;
                entry.known = Some(Known {
                    versions: versions.into(),
                    read_at: now,
                });
            }
            Err(error) => {
                // A definite answer (gone, unusable) ends the use of what was known;
                // silence does not.
                if !error.is_transient() {
                    entry.known = None;
                }
                entry.failure = Some(Arc::new(error));
            }
        }
    }

    fn decide(
        &self,
        entry: &Entry,
        now: OffsetDateTime,
    ) -> Result<Arc<[SecretVersion]>, Arc<FetchError>> {
        let usable_for = match &entry.failure {
            None => self.limits.fresh_for,
            Some(_) => self.limits.stale_for,
        };
        match (entry.younger_than(usable_for, now), &entry.failure) {
            (Some(versions), _) => Ok(versions),
            (None, Some(failure)) => Err(Arc::clone(failure)),
            // A success always leaves versions read at this very `now`.
            (None, None) => unreachable!("a fetch either fails or leaves versions"),
        }
    }
}
