//! Connections that wait to be used again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Connection;
use crate::settings::{EgressSettings, MAX_CONNECTION_AGE};
use crate::target::Target;

/// How often expired connections are looked for, at most.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What a connection can be used for: the same name, the same port, TLS or not.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    https: bool,
    host: String,
    port: u16,
}

impl Origin {
    pub(crate) fn of(target: &Target) -> Self {
        Self {
            https: target.is_https(),
            host: target.host_text().to_owned(),
            port: target.port(),
        }
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

#[derive(Default)]
struct Shelf {
    by_origin: HashMap<Origin, Vec<Idle>>,
    count: usize,
    swept: Option<Instant>,
}

/// The pool. No connection in it is lent to two requests.
pub(crate) struct Pool {
    shelf: Mutex<Shelf>,
    idle: Duration,
    per_destination: usize,
    in_all: usize,
}

impl Pool {
    pub(crate) fn new(settings: &EgressSettings) -> Self {
        Self {
            shelf: Mutex::default(),
            idle: settings.idle,
            per_destination: settings.max_idle_per_destination,
            in_all: settings.max_idle,
        }
    }

    /// The connection used last, if its address passes the check of today.
    pub(crate) fn take(
        &self,
        origin: &Origin,
        permits: impl Fn(IpAddr) -> bool,
    ) -> Option<Connection> {
        let now = Instant::now();
        let mut shelf = self.lock();
        loop {
            let waiting = shelf.by_origin.get_mut(origin)?;
            let Some(idle) = waiting.pop() else {
                shelf.by_origin.remove(origin);
                return None;
            };
            shelf.count -= 1;
            if self.is_usable(&idle, now) && permits(idle.connection.peer) {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection whose exchange is over, where there is room.
    pub(crate) fn put(&self, origin: Origin, connection: Connection) {
        let idle = Idle {
            connection,
            since: Instant::now(),
        };
        let mut shelf = self.lock();
        self.sweep(&mut shelf, idle.since);
        if shelf.count >= self.in_all || !self.is_usable(&idle, idle.since) {
            return;
        }
        let waiting = shelf.by_origin.entry(origin).or_default();
        if waiting.len() < self.per_destination {
            waiting.push(idle);
            shelf.count += 1;
        }
    }

    fn is_usable(&self, idle: &Idle, now: Instant) -> bool {
        now.duration_since(idle.since) < self.idle
            && now.duration_since(idle.connection.opened) < MAX_CONNECTION_AGE
            && !idle.connection.is_closed()
    }

    fn sweep(&self, shelf: &mut Shelf, now: Instant) {
        let due = |swept| now.duration_since(swept) >= SWEEP_EVERY;
        if !shelf.swept.is_none_or(due) {
            return;
        }
        shelf.swept = Some(now);
        shelf.by_origin.retain(|_, waiting| {
            waiting.retain(|idle| self.is_usable(idle, now));
            !waiting.is_empty()
        });
        shelf.count = shelf.by_origin.values().map(Vec::len).sum();
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        // A panic elsewhere cannot leave the shelf half changed.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
