//! The sink itself: an HTTP/1.1 server whose answers can be switched while it runs.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookstead_signing::Secret;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::connection;
use super::mode::Mode;
use super::received::{Counts, Received};

/// Called for every request as soon as it is there.
pub type Observer = Box<dyn Fn(&Received) + Send + Sync>;

/// How a sink begins.
pub struct SinkOptions {
    /// How it answers at first.
    pub mode: Mode,
    /// Standard Webhooks secrets, any of which may verify; empty: nothing is checked.
    pub secrets: Vec<Secret>,
    /// How many requests it keeps for [`Sink::received`], the newest ones.
    pub keep: usize,
    /// Called for every request.
    pub observer: Option<Observer>,
}

impl Default for SinkOptions {
    /// Says 200 to everything, checks nothing, keeps ten thousand: what a test sends.
    fn default() -> Self {
        Self {
            mode: Mode::Ok,
            secrets: Vec::new(),
            keep: 10_000,
            observer: None,
        }
    }
}

impl std::fmt::Debug for SinkOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkOptions")
            .field("mode", &self.mode)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

/// What connections share.
pub(super) struct Shared {
    pub(super) secrets: Vec<Secret>,
    keep: usize,
    observer: Option<Observer>,
    mode: Mutex<Mode>,
    log: Mutex<Log>,
    count: watch::Sender<u64>,
}

#[derive(Default)]
struct Log {
    kept: VecDeque<Received>,
    counts: Counts,
}

impl Shared {
    pub(super) fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = mode;
    }

    pub(super) fn counts(&self) -> Counts {
        lock(&self.log).counts
    }

    /// Numbers a request and writes it down.
    pub(super) fn take_down(&self, mut received: Received, accepted: bool) {
        let count = {
            let mut log = lock(&self.log);
            received.number = log.counts.received + 1;
            log.counts.add(&received, accepted);
            if let Some(observer) = &self.observer {
                observer(&received);
            }
            if self.keep > 0 {
                if log.kept.len() == self.keep {
                    log.kept.pop_front();
                }
                log.kept.push_back(received);
            }
            log.counts.received
        };
        self.count.send_replace(count);
    }
}

/// What the lock guards stays whole wherever a holder panics: values are replaced.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running sink. Dropping it stops it without waiting.
pub struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Sink {
    /// Serves on this listener, on the runtime of the caller, until it is stopped.
    ///
    /// # Errors
    ///
    /// The system's, where the listener has no address.
    pub fn start(listener: TcpListener, options: SinkOptions) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            secrets: options.secrets,
            keep: options.keep,
            observer: options.observer,
            mode: Mutex::new(options.mode),
            log: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let (stop, told) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared), told));
        Ok(Self {
            address,
            shared,
            stop,
            serving,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL: `http://127.0.0.1:9000`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How it answers now.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.shared.mode()
    }

    /// Answers so from the next request on.
    pub fn set_mode(&self, mode: Mode) {
        self.shared.set_mode(mode);
    }

    /// The requests it keeps, oldest first.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.log).kept.iter().cloned().collect()
    }

    /// How many requests there were.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Waits until there were at least so many requests, and gives those it keeps.
    pub async fn wait_for(&self, requests: u64) -> Vec<Received> {
        let mut count = self.shared.count.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        count.wait_for(|&count| count >= requests).await.ok();
        self.received()
    }

    /// Closes every connection, frees the port, and says how many requests there were.
    pub async fn stop(mut self) -> Counts {
        self.stop.send_replace(true);
        // A panic of the server has been reported where it happened.
        (&mut self.serving).await.ok();
        self.counts()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, mut told: watch::Receiver<bool>) {
    // Dropping the set ends the connections: a request that hangs would never end by itself.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection::serve(stream, Arc::clone(&shared)));
                }
                // Too many open files, or a caller that is gone again: the next may work.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
            // The only change there is, or the sink was dropped.
            _ = told.changed() => break,
        }
    }
}
