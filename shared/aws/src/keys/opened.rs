//! Data keys in the clear, for a bounded time: one look at the key's place for all that
//! ask for the same one at once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::{DataKeys, KeyError, PlainKey};

/// How many are held: a worker's batch needs a few, and each is some hundred bytes.
const MAX_HELD: usize = 1_000;

/// How long a failure is remembered: a storm of deliveries asks once a second at most,
/// and what was repaired works at once for a human.
const FAILURE_AGE: Duration = Duration::from_secs(1);

/// A wrapped key, and the id of the key that wrapped it.
type Name = (String, Vec<u8>);

/// What the place said, and when it was first asked.
struct Slot {
    since: Instant,
    said: OnceCell<Result<PlainKey, KeyError>>,
}

/// The keys.
pub(super) struct Opened {
    max_age: Duration,
    slots: Mutex<HashMap<Name, Arc<Slot>>>,
}

/// A key that is held.
pub(super) struct Held(Arc<Slot>);

impl Held {
    pub(super) fn key(&self) -> Result<&PlainKey, KeyError> {
        match self.0.said.get() {
            Some(Ok(key)) => Ok(key),
            Some(Err(error)) => Err(error.clone()),
            None => Err(KeyError::refused("not_asked")),
        }
    }
}

impl Slot {
    fn is_fresh(&self, now: Instant, max_age: Duration) -> bool {
        let limit = match self.said.get() {
            Some(Err(_)) => FAILURE_AGE,
            // One that is still being asked for is joined, not asked for again.
            Some(Ok(_)) | None => max_age,
        };
        now.duration_since(self.since) < limit
    }
}

impl Opened {
    pub(super) fn new(max_age: Duration) -> Self {
        Self {
            max_age,
            slots: Mutex::default(),
        }
    }

    /// The key, from memory or from its place.
    pub(super) async fn get(&self, keys: &dyn DataKeys, wrapped: &[u8], key_id: &str) -> Held {
        let slot = self.slot((key_id.to_owned(), wrapped.to_vec()));
        slot.said
            .get_or_init(|| keys.unwrap_key(wrapped, key_id))
            .await;
        Held(slot)
    }

    fn slot(&self, name: Name) -> Arc<Slot> {
        let now = Instant::now();
        // Nothing that can panic happens while the lock is held.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&name)
            && slot.is_fresh(now, self.max_age)
        {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_HELD {
            slots.retain(|_, slot| slot.is_fresh(now, self.max_age));
        }
        if slots.len() >= MAX_HELD {
            // All are in use: start over rather than keep an order for this alone.
            slots.clear();
        }
        let slot = Arc::new(Slot {
            since: now,
            said: OnceCell::new(),
        });
        slots.insert(name, Arc::clone(&slot));
        slot
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("max_age", &self.max_age)
            .finish_non_exhaustive()
    }
}
