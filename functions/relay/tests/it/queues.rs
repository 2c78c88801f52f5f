//! Queues that misbehave, in front of one that does not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hookstead_aws::queue::{
    LocalQueue, QueueDepth, QueueError, QueueFuture, SendMessages, SendRefused,
};
use hookstead_domain::DeliveryId;
use tokio::sync::Semaphore;

/// Refuses messages about one delivery for as long as it is told to.
pub(crate) struct Picky {
    pub(crate) behind: Arc<LocalQueue>,
    refused: Mutex<Option<DeliveryId>>,
    /// One permit per refusal.
    pub(crate) refusals: Semaphore,
}

impl Picky {
    pub(crate) fn new(behind: &Arc<LocalQueue>, refused: DeliveryId) -> Arc<Self> {
        Arc::new(Self {
            behind: behind.clone(),
            refused: Mutex::new(Some(refused)),
            refusals: Semaphore::new(0),
        })
    }

    pub(crate) fn take_everything(&self) {
        *self.refused.lock().unwrap() = None;
    }

    async fn sort(&self, bodies: &[String]) -> Vec<Result<(), SendRefused>> {
        let mut answers = Vec::new();
        for body in bodies {
            let refused = *self.refused.lock().unwrap();
            if refused.is_some_and(|id| body.contains(&id.to_string())) {
                self.refusals.add_permits(1);
                answers.push(Err(throttled()));
            } else {
                answers.extend(self.behind.send(std::slice::from_ref(body)).await);
            }
        }
        answers
    }
}

impl SendMessages for Picky {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        Box::pin(self.sort(bodies))
    }
}

impl QueueDepth for Picky {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        self.behind.depth()
    }
}

/// Never answers a send. What it was given it keeps.
#[derive(Default)]
pub(crate) struct Hanging {
    pub(crate) given: Mutex<Vec<String>>,
    /// One permit per send.
    pub(crate) sends: Gate,
}

pub(crate) struct Gate(pub(crate) Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl SendMessages for Hanging {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        self.given.lock().unwrap().extend_from_slice(bodies);
        self.sends.0.add_permits(1);
        Box::pin(std::future::pending())
    }
}

impl QueueDepth for Hanging {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        Box::pin(std::future::ready(Ok(0)))
    }
}

/// Says that it is deep.
pub(crate) struct Deep {
    pub(crate) behind: Arc<LocalQueue>,
    pub(crate) depth: AtomicU64,
    /// One permit per question.
    pub(crate) asked: Semaphore,
}

impl SendMessages for Deep {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        self.behind.send(bodies)
    }
}

impl QueueDepth for Deep {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        self.asked.add_permits(1);
        let depth = self.depth.load(Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(depth)))
    }
}

/// Panics at its first send.
pub(crate) struct Panicking {
    pub(crate) behind: Arc<LocalQueue>,
    pub(crate) done: AtomicBool,
}

impl SendMessages for Panicking {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        assert!(self.done.swap(true, Ordering::SeqCst), "the first send");
        self.behind.send(bodies)
    }
}

fn throttled() -> SendRefused {
    SendRefused::Transient {
        code: "ThrottlingException".to_owned(),
        cause: None,
    }
}
