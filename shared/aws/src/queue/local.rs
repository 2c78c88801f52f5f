//! A queue inside the process, for `dev` and for tests, with SQS's manners.

mod shelf;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::shelf::Shelf;
use super::limits::{self, MAX_ENTRIES, MAX_WAIT};
use super::{
    QueueDepth, QueueError, QueueFuture, ReceiveMessages, Received, SendMessages, SendRefused,
};

pub use self::shelf::MAX_HELD_BYTES;

/// A queue inside the process. Nothing that it took is lost while the process lives.
///
/// As on SQS, what is received is hidden for the visibility timeout and comes again
/// when it was not deleted; after so many receives it goes to the queue of dead letters,
/// where there is one; order is not promised. A send wakes a waiting receiver at once.
/// When it holds [`MAX_HELD_BYTES`], it refuses what is sent, for the time being.
///
/// Time is tokio's, so tests can pause it.
#[derive(Debug)]
pub struct LocalQueue {
    shelf: Mutex<Shelf>,
    arrived: Notify,
    visibility_timeout: Duration,
    dead_letters: Option<DeadLetters>,
}

#[derive(Debug)]
struct DeadLetters {
    queue: Arc<LocalQueue>,
    max_receives: u32,
}

impl LocalQueue {
    /// An empty queue without a queue of dead letters.
    #[must_use]
    pub fn new(visibility_timeout: Duration) -> Self {
        Self {
            shelf: Mutex::default(),
            arrived: Notify::new(),
            visibility_timeout,
            dead_letters: None,
        }
    }

    /// The same queue, with what was received `max_receives` times and never deleted
    /// going to `queue` instead of being received once more.
    #[must_use]
    pub fn with_dead_letters(self, queue: Arc<Self>, max_receives: u32) -> Self {
        let dead_letters = Some(DeadLetters {
            queue,
            max_receives,
        });
        Self {
            dead_letters,
            ..self
        }
    }

    /// Moves all messages that could be received now to the other queue, where they are
    /// new ones, and says how many. What the other has no room for stays.
    pub fn move_all_to(&self, target: &Self) -> usize {
        let now = Instant::now();
        let mut moved = 0;
        // The two are never locked at the same time, so two queues may move to each other.
        let available = self.shelf().available(now);
        for _ in 0..available {
            let Some(message) = self.shelf().take(now) else {
                break;
            };
            if let Err(body) = target.put(message.body) {
                self.put_back(body);
                break;
            }
            moved += 1;
        }
        moved
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // No code that holds the lock can leave the shelf half-changed.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, body: String) -> Result<(), String> {
        self.shelf().put(body)?;
        self.arrived.notify_waiters();
        Ok(())
    }

    fn put_back(&self, body: String) {
        self.shelf().put_back(body);
        self.arrived.notify_waiters();
    }

    /// What can be received now; what was received too often is moved away.
    fn receive_now(&self, max: usize) -> Vec<Received> {
        let now = Instant::now();
        let limit = self.dead_letters.as_ref().map(|dead| dead.max_receives);
        let batch = self
            .shelf()
            .receive(now, now + self.visibility_timeout, max, limit);
        for body in batch.dead {
            if let Some(dead) = &self.dead_letters
                && let Err(body) = dead.queue.put(body)
            {
                self.put_back(body);
            }
        }
        batch.received
    }

    async fn receive_within(&self, max: usize, wait: Duration) -> Vec<Received> {
        let deadline = Instant::now() + wait.min(MAX_WAIT);
        let max = max.clamp(1, MAX_ENTRIES);
        loop {
            // Registered before looking, so that nothing arrives unseen in between.
            let arrived = self.arrived.notified();
            let received = self.receive_now(max);
            if !received.is_empty() || Instant::now() >= deadline {
                return received;
            }
            let reappears = self.shelf().next_visible_at();
            let until = reappears.map_or(deadline, |at| at.min(deadline));
            tokio::select! {
                () = arrived => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

impl SendMessages for LocalQueue {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        let sent = bodies.iter().map(|body| {
            limits::check(body)?;
            self.put(body.clone())
                .map_err(|_| SendRefused::transient("queue_full"))
        });
        Box::pin(std::future::ready(sent.collect()))
    }
}

impl QueueDepth for LocalQueue {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        let depth = self.shelf().available(Instant::now());
        Box::pin(std::future::ready(Ok(
            u64::try_from(depth).unwrap_or(u64::MAX)
        )))
    }
}

impl ReceiveMessages for LocalQueue {
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>> {
        Box::pin(async move { Ok(self.receive_within(max, wait).await) })
    }

    fn delete<'a>(
        &'a self,
        receipts: &'a [String],
    ) -> QueueFuture<'a, Vec<Result<(), QueueError>>> {
        let mut shelf = self.shelf();
        let deleted = receipts.iter().map(|receipt| shelf.delete(receipt));
        let deleted = deleted.collect();
        drop(shelf);
        Box::pin(std::future::ready(deleted))
    }
}
