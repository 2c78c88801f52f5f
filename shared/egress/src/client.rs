//! The client.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::answer::{Answer, KeptHeaders};
use crate::connection::{Broken, Connection, Received};
use crate::dial;
use crate::failure::{self, Cause, SendFailure};
use crate::pool::{Origin, Pool};
use crate::request::OutgoingRequest;
use crate::settings::{EgressError, EgressSettings};
use crate::target::{Target, TargetError};
use crate::tls;

/// How long a kept connection may take to be ready. It is ready at once, unless its
/// last request was answered before it was written; a fresh one is better then.
const READY_WITHIN: Duration = Duration::from_millis(50);

/// The one way out: every request of the process goes through it.
///
/// Cloning is cheap and shares the connections. It follows no redirect, knows no proxy,
/// and logs nothing.
#[derive(Clone)]
pub struct Egress(Arc<Shared>);

struct Shared {
    settings: EgressSettings,
    tls: TlsConnector,
    pool: Pool,
}

impl Egress {
    /// A client; one per process.
    ///
    /// # Errors
    ///
    /// [`EgressError`] where a root certificate cannot be used.
    pub fn new(settings: EgressSettings) -> Result<Self, EgressError> {
        let tls = tls::connector(&settings.extra_roots)?;
        let pool = Pool::new(&settings);
        Ok(Self(Arc::new(Shared {
            settings,
            tls,
            pool,
        })))
    }

    /// Checks a URL as [`Egress::send`] will: with this process's exceptions.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong.
    pub fn target(&self, url: &str, allow_http: bool) -> Result<Target, TargetError> {
        Target::parse_allowing(url, allow_http, &self.0.settings.allowed)
    }

    /// Sends a request and reads the answer, within its deadline.
    ///
    /// An answer of any status is an [`Answer`]. A kept connection that turns out to be
    /// dead before anything was answered is replaced once, so the destination may see
    /// the request twice, as with every repetition. Dropping the future closes the
    /// connection and is no failure.
    ///
    /// # Errors
    ///
    /// [`SendFailure`] with its class where there was no whole answer, or where the URL
    /// or an address of its name is refused.
    pub async fn send(&self, request: OutgoingRequest) -> Result<Answer, SendFailure> {
        let started = Instant::now();
        let deadline = started + request.bounded_deadline();
        let sent = self.0.send(&request, deadline).await;
        let latency_ms = started.elapsed().as_millis();
        let latency_ms = u32::try_from(latency_ms).unwrap_or(u32::MAX);
        match sent {
            Ok(received) => Ok(answer(received, latency_ms)),
            Err(broken) => Err(SendFailure {
                class: broken.cause.class,
                detail: broken.cause.detail,
                status: broken.status,
                latency_ms,
            }),
        }
    }
}

impl Shared {
    async fn send(&self, request: &OutgoingRequest, deadline: Instant) -> Result<Received, Broken> {
        let allowed = &self.settings.allowed;
        let target = Target::parse_allowing(&request.url, request.allow_http, allowed)
            .map_err(|error| Cause::new(error.class(), error.code()))?;
        let origin = Origin::of(&target);
        if let Some(kept) = self.kept(&origin).await {
            match self
                .exchange(kept, &origin, &target, request, deadline)
                .await
            {
                Err(broken) if broken.unanswered => {}
                finished => return finished,
            }
        }
        let fresh = self.open(&target, deadline).await?;
        self.exchange(fresh, &origin, &target, request, deadline)
            .await
    }

    async fn kept(&self, origin: &Origin) -> Option<Connection> {
        let permits = |peer| self.settings.allowed.permits(peer);
        let mut kept = self.pool.take(origin, permits)?;
        let ready = timeout(READY_WITHIN, kept.is_ready()).await;
        ready.unwrap_or(false).then_some(kept)
    }

    async fn open(&self, target: &Target, deadline: Instant) -> Result<Connection, Cause> {
        let resolver = self.settings.resolver.as_ref();
        let resolving = dial::addresses(target, &self.settings.allowed, resolver);
        let addresses = timeout_at(deadline, resolving)
            .await
            .map_err(|_| Cause::timeout(failure::TIMEOUT_DNS))??;
        let stream = timeout_at(deadline, dial::connect(addresses))
            .await
            .map_err(|_| Cause::timeout(failure::TIMEOUT_CONNECT))??;
        Connection::begin(stream, target, &self.tls, deadline).await
    }

    async fn exchange(
        &self,
        mut connection: Connection,
        origin: &Origin,
        target: &Target,
        request: &OutgoingRequest,
        deadline: Instant,
    ) -> Result<Received, Broken> {
        let written = request.to_http(target)?;
        let max_body = self.settings.max_body_bytes;
        let received = connection.exchange(written, max_body, deadline).await?;
        // After a 101 the connection speaks another protocol; after a cut body the rest
        // of it would still come.
        let switched = received.head.status.is_informational();
        if !received.body.cut && !switched {
            self.pool.put(origin.clone(), connection);
        }
        Ok(received)
    }
}

impl From<Cause> for Broken {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            status: None,
            unanswered: false,
        }
    }
}

fn answer(received: Received, latency_ms: u32) -> Answer {
    let Received { head, body } = received;
    let headers = KeptHeaders::of(&head.headers);
    Answer {
        status: head.status.as_u16(),
        partner_request_id: headers.request_id().map(str::to_owned),
        headers,
        body_sha256: body.sha256,
        body_bytes: body.bytes,
        body_cut: body.cut,
        body_prefix: body.prefix,
        latency_ms,
    }
}
