//! A few connections, opened when needed and used without ceremony.
//!
//! A general pool asks a connection whether it is alive before it lends it, and
//! again when it comes back: two round trips around a statement that itself is
//! one. Here a connection is simply used. If it turns out to be dead, as after a
//! freeze of the environment, the operation is tried once more on a fresh one.
//! Every operation run here must therefore be safe to repeat.
//!
//! A connection goes back only after its operation has ended and its state is
//! known. One whose future was dropped half-way is closed with it, so nobody ever
//! inherits an open transaction.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::error::{ConnectionFault, StoreError};

/// The future of a [`Connector`].
pub type OptionsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<PgConnectOptions, StoreError>> + Send + 'a>>;

/// Says where and as whom to connect. Asked for every physical connection, so
/// that a login token that is only good for minutes can be made for each.
pub trait Connector: Send + Sync + 'static {
    /// The options of the next connection.
    fn options(&self) -> OptionsFuture<'_>;
}

impl Connector for PgConnectOptions {
    fn options(&self) -> OptionsFuture<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// Sessions whose statements never read a whole table where a key will do.
///
/// Claims are prepared once and planned for the queue as it was then. A plan that was
/// kept from an empty queue reads a long one whole, each time, until the server has
/// counted it anew: up to a minute in which a claim takes forty times as long. For
/// connections that claim and finish, not for those of anybody's own statements.
#[must_use]
pub fn planned_by_key(options: PgConnectOptions) -> PgConnectOptions {
    options.options([
        ("enable_seqscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        // What is scanned all the same counts as dear beyond measure, and dear
        // statements would be compiled: a second, for what takes a millisecond.
        ("jit", "off"),
    ])
}

/// Something to do on a connection, safe to repeat.
///
/// A type of its own and not a closure: the compiler cannot prove that the future
/// of a closure that borrows is `Send`, and a server moves its tasks between threads.
pub trait Operation: Sync {
    /// What it gives.
    type Output: Send;

    /// Whether it may rightly take longer than [`ConnectionLimits::suspect_timeout`], as
    /// code of somebody else's does. A connection under suspicion is then asked for a
    /// sign of life first, instead of being given up in the middle of the work.
    const TAKES_ITS_TIME: bool = false;

    /// Does it once.
    fn run(
        &self,
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<Self::Output, StoreError>> + Send;
}

/// How many connections, and how long to wait for what.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Most connections open at once.
    pub slots: usize,
    /// How long an operation waits for one to become free.
    pub acquire_timeout: Duration,
    /// How long opening one may take, credentials included.
    pub connect_timeout: Duration,
    /// Time without use after which a connection may have died without a word: the
    /// environment may have been frozen meanwhile.
    pub suspect_after: Duration,
    /// How long an operation on such a connection may take before the connection is
    /// taken for dead and the operation repeated on a fresh one; for operations that
    /// take their time, how long it may take to give a sign of life. A connection in
    /// steady use is never suspected: a server that is merely slow must not get
    /// every statement twice.
    pub suspect_timeout: Duration,
}

impl Default for ConnectionLimits {
    /// One connection, as an environment that serves one request at a time needs.
    ///
    /// Waiting adds up to less than ten seconds, the shortest time in which a
    /// large provider gives up, so that there is always time to answer 503.
    fn default() -> Self {
        Self {
            slots: 1,
            acquire_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(3),
            suspect_after: Duration::from_secs(10),
            suspect_timeout: Duration::from_secs(2),
        }
    }
}

/// The connections of one process. Clones share them.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    connector: Box<dyn Connector>,
    limits: ConnectionLimits,
    free: Semaphore,
    /// Open and unused, last used last: the most recent one is the likeliest to live.
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    connection: PgConnection,
    /// By the wall clock: the monotonic one may stand still in a frozen environment.
    since: SystemTime,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections")
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}

impl Connections {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(connector: impl Connector, limits: ConnectionLimits) -> Self {
        Self {
            shared: Arc::new(Shared {
                connector: Box::new(connector),
                free: Semaphore::new(limits.slots),
                limits,
                idle: Mutex::default(),
            }),
        }
    }

    /// Connections by a `postgres://` URL. Opens nothing yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::Misconfigured`] where the text is no such URL.
    pub fn from_url(url: &str, limits: ConnectionLimits) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse().map_err(StoreError::from)?;
        Ok(Self::new(options, limits))
    }

    /// [`Connections::from_url`] for statements that look rows of the queue up by their
    /// keys: see [`planned_by_key`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Misconfigured`] where the text is no such URL.
    pub fn from_url_by_key(url: &str, limits: ConnectionLimits) -> Result<Self, StoreError> {
        let options: PgConnectOptions = url.parse().map_err(StoreError::from)?;
        Ok(Self::new(planned_by_key(options), limits))
    }

    /// Runs an operation on a connection, and once more on a fresh one where the
    /// first turns out to be broken. The operation must be safe to repeat.
    ///
    /// # Errors
    ///
    /// Those of the operation, of connecting, and [`StoreError::AcquireTimeout`].
    pub async fn run<O: Operation>(&self, operation: &O) -> Result<O::Output, StoreError> {
        let _slot = self.acquire().await?;
        let first = match self.take_idle() {
            Some(idle) => {
                let limit = self.suspicion(idle.since);
                self.use_once(idle.connection, limit, operation).await
            }
            // One that does not even open is not tried again: the caller's time is short.
            None => self.use_once(self.open().await?, None, operation).await,
        };
        match first {
            Err(error) if error.is_broken_connection() => {
                self.use_once(self.open().await?, None, operation).await
            }
            outcome => outcome,
        }
    }

    async fn use_once<O: Operation>(
        &self,
        mut connection: PgConnection,
        limit: Option<Duration>,
        operation: &O,
    ) -> Result<O::Output, StoreError> {
        let silent = || StoreError::Connection(ConnectionFault::Silent);
        let outcome = match limit {
            Some(limit) if O::TAKES_ITS_TIME => {
                let sign_of_life = timeout(limit, connection.ping()).await;
                let alive = sign_of_life.map_or_else(|_| Err(silent()), |sign| Ok(sign?));
                match alive {
                    Ok(()) => operation.run(&mut connection).await,
                    Err(error) => Err(error),
                }
            }
            Some(limit) => timeout(limit, operation.run(&mut connection))
                .await
                .unwrap_or_else(|_| Err(silent())),
            None => operation.run(&mut connection).await,
        };
        self.put_back(connection, &outcome);
        outcome
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        timeout(
            self.shared.limits.acquire_timeout,
            self.shared.free.acquire(),
        )
        .await
        .ok()
        // It is never closed, so an error can only mean that we waited in vain.
        .and_then(Result::ok)
        .ok_or(StoreError::AcquireTimeout)
    }

    async fn open(&self) -> Result<PgConnection, StoreError> {
        let opening = async {
            // Statements are static text, but a slow one would be logged on every use.
            let options = self
                .shared
                .connector
                .options()
                .await?
                .disable_statement_logging();
            Ok(PgConnection::connect_with(&options).await?)
        };
        timeout(self.shared.limits.connect_timeout, opening)
            .await
            .unwrap_or(Err(StoreError::Connection(ConnectionFault::ConnectTimeout)))
    }

    fn take_idle(&self) -> Option<Idle> {
        self.idle().pop()
    }

    /// How long to wait for a connection that was last used at `since`; `None` for as
    /// long as the caller does.
    fn suspicion(&self, since: SystemTime) -> Option<Duration> {
        // A clock that was set back says nothing about the age; suspect the connection.
        let age = since.elapsed().unwrap_or(Duration::MAX);
        (age >= self.shared.limits.suspect_after).then_some(self.shared.limits.suspect_timeout)
    }

    /// Keeps a connection whose state is known to be good, closes any other.
    fn put_back<T>(&self, connection: PgConnection, outcome: &Result<T, StoreError>) {
        let keep = match outcome {
            Ok(_) => true,
            // The server ended the statement and is ready for the next.
            Err(error @ StoreError::Refused(_)) => !error.is_broken_connection(),
            Err(_) => false,
        };
        if keep {
            self.idle().push(Idle {
                connection,
                since: SystemTime::now(),
            });
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        // Only pushes and pops happen under the lock; a poisoned one is still whole.
        self.shared
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
