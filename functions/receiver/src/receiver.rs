//! The steps of one request, in their order.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::SendMessages;
use hookstead_domain::{ErrorCode, SourceName};
use hookstead_secrets::{CacheLimits, SecretCache, SecretProvider};
use hookstead_signing::{Rejection, Request, Scheme, Signs, Verified};
use hookstead_store::{Connections, EnabledSources, FirstEventId, Ingest, Ingested, StoreError};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout};

use crate::answer::Answer;
use crate::body::{self, Coding};
use crate::clock::Clock;
use crate::config::Config;
use crate::directory::{Directory, DirectoryLimits, Source};
use crate::event::Draft;
use crate::kick::Kick;
use crate::rejection;
use crate::request::InboundRequest;

/// What one receiver accepts.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest body, in bytes, as sent and decompressed.
    pub max_body_bytes: usize,
    /// How long the store may take before the answer is 503, reading the sources included.
    pub store_timeout: Duration,
    /// How old the directory of sources may get.
    pub directory: DirectoryLimits,
    /// How old secrets may get.
    pub secrets: CacheLimits,
}

/// Receives webhooks. One per process, shared by all requests.
pub struct Receiver<P> {
    connections: Connections,
    directory: Directory,
    pub(crate) secrets: SecretCache<P>,
    clock: Clock,
    limits: Limits,
    region: Option<String>,
    kick: Option<Kick>,
}

/// What the steps after the look-up share.
pub(crate) struct Call<'a> {
    pub(crate) source: &'a Source,
    pub(crate) scheme: &'a Scheme,
    inbound: &'a InboundRequest,
    url: String,
    pub(crate) now: OffsetDateTime,
    /// What reading the sources left of the time for the store.
    store_time_left: Duration,
}

impl<'a> Call<'a> {
    fn request(&'a self, decoded_body: Option<&'a [u8]>) -> Request<'a> {
        Request {
            method: &self.inbound.method,
            url: &self.url,
            headers: &self.inbound.headers,
            body: &self.inbound.body,
            decoded_body,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.source.record.name.as_str()
    }

    /// Logs why this request is refused, and gives the code to answer with.
    pub(crate) fn refuse(&self, code: ErrorCode, rejection: Option<&Rejection>) -> ErrorCode {
        rejection::log(self.name(), self.inbound, code, rejection);
        code
    }
}

impl Limits {
    /// The limits that a configuration asks for, with the default ages.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            max_body_bytes: config.max_body_bytes,
            store_timeout: config.store_timeout,
            directory: DirectoryLimits::default(),
            secrets: CacheLimits::default(),
        }
    }
}

impl<P: SecretProvider> Receiver<P> {
    /// A receiver that stores through `connections` and verifies with the secrets of `provider`.
    pub fn new(
        connections: Connections,
        provider: P,
        clock: Clock,
        limits: Limits,
        region: Option<String>,
    ) -> Self {
        Self {
            connections,
            directory: Directory::new(limits.directory),
            secrets: SecretCache::new(provider, limits.secrets),
            clock,
            limits,
            region,
            kick: None,
        }
    }

    /// Asks for first attempts on this queue right after each commit. Without it, the
    /// relay alone asks.
    #[must_use]
    pub fn with_kick(self, queue: impl SendMessages + 'static) -> Self {
        Self {
            kick: Some(Kick::new(queue)),
            ..self
        }
    }

    /// The largest body that is accepted, in bytes, for adapters that read one themselves.
    pub fn max_body_bytes(&self) -> usize {
        self.limits.max_body_bytes
    }

    /// Answers one request. Everything that the answer promises is done when it returns.
    pub async fn handle(&self, inbound: InboundRequest) -> Answer {
        let mut answer = match self.route(&inbound).await {
            Ok(answer) => answer,
            Err(code) => Answer::refused(code),
        };
        if inbound.method == "HEAD" {
            answer.body.clear();
        }
        answer
    }

    async fn route(&self, inbound: &InboundRequest) -> Result<Answer, ErrorCode> {
        let name = self
            .name(inbound)
            .inspect_err(|code| rejection::log_unrouted(inbound, *code))?;
        let now = self.clock.now();
        let begun = Instant::now();
        let source = self.find_source(&name, now).await;
        if source.as_ref().err() == Some(&ErrorCode::UnknownSource) {
            rejection::log_unrouted(inbound, ErrorCode::UnknownSource);
        }
        let source = source?;
        let store_time_left = self.limits.store_timeout.saturating_sub(begun.elapsed());
        let scheme = source.scheme.as_ref().ok_or(ErrorCode::Internal)?;
        let call = Call {
            source: &source,
            scheme,
            inbound,
            url: inbound.signed_url(source.record.public_url.as_deref()),
            now,
            store_time_left,
        };
        match inbound.method.as_str() {
            "POST" => self.receive(&call).await,
            "GET" | "HEAD" | "OPTIONS" => self.probe(&call).await,
            _ => Err(call.refuse(ErrorCode::MethodNotAllowed, None)),
        }
    }

    /// The source that is called, as far as the request alone says.
    fn name(&self, inbound: &InboundRequest) -> Result<SourceName, ErrorCode> {
        let name = inbound.source_name().ok_or(ErrorCode::NotFound)?;
        // A text that cannot be a name is not looked up, but answered like any unknown one.
        let name = name.parse().map_err(|_| ErrorCode::UnknownSource)?;
        if inbound.body.len() > self.limits.max_body_bytes {
            return Err(ErrorCode::BodyTooLarge);
        }
        Ok(name)
    }

    async fn find_source(
        &self,
        name: &SourceName,
        now: OffsetDateTime,
    ) -> Result<Arc<Source>, ErrorCode> {
        let read = || self.connections.run(&EnabledSources);
        let finding = self.directory.find(name.as_str(), now, read);
        // Waiting for another request's reading counts as well.
        let found = match timeout(self.limits.store_timeout, finding).await {
            Ok(found) => found,
            Err(_) => match self.directory.known(name.as_str()) {
                Some(known) => Ok(Some(known)),
                None => Err(StoreError::Silent),
            },
        };
        match found {
            Ok(Some(source)) => Ok(source),
            Ok(None) => Err(ErrorCode::UnknownSource),
            Err(error) => Err(store_unavailable("the sources could not be read", &error)),
        }
    }

    /// GET, HEAD and OPTIONS: a challenge where the kind has one, else a sign of life.
    async fn probe(&self, call: &Call<'_>) -> Result<Answer, ErrorCode> {
        if !call.scheme.handshake.is_empty() {
            let versions = self.secret_versions(call).await?;
            if let Some(answer) = self.handshake(call, &call.request(None), &versions).await? {
                return Ok(answer);
            }
        }
        Ok(Answer::probe(&call.inbound.method))
    }

    /// POST: verify, store, acknowledge.
    async fn receive(&self, call: &Call<'_>) -> Result<Answer, ErrorCode> {
        let refuse = |code| call.refuse(code, None);
        let coding = body::coding(&call.inbound.headers).map_err(refuse)?;
        let decode = || body::decode(coding, &call.inbound.body, self.limits.max_body_bytes);
        let signed_body = match (coding, call.scheme.signs) {
            (Coding::Gzip, Signs::Decoded) => Some(decode().map_err(refuse)?),
            _ => None,
        };
        let request = call.request(signed_body.as_deref());
        let versions = self.secret_versions(call).await;
        // A handshake may be what brings the first secret.
        let known = versions.as_deref().unwrap_or_default();
        if let Some(answer) = self.handshake(call, &request, known).await? {
            return Ok(answer);
        }
        let versions = versions?;
        let verified = self.verify(call, &request, &versions).await?;
        let plain = match signed_body {
            Some(plain) => plain,
            // Verified, so the sender's own: what cannot be decoded is kept as it is.
            None => match decode() {
                Err(ErrorCode::MalformedRequest) => Cow::Borrowed(&call.inbound.body[..]),
                plain => plain.map_err(refuse)?,
            },
        };
        let decoded_body = (coding == Coding::Gzip).then_some(&plain[..]);
        let stored = self
            .store(call, &call.request(decoded_body), &verified)
            .await?;
        Ok(stored.worded(call.scheme.acknowledge.as_deref()))
    }

    async fn store(
        &self,
        call: &Call<'_>,
        request: &Request<'_>,
        verified: &Verified,
    ) -> Result<Answer, ErrorCode> {
        let draft = Draft::new(call.source, call.scheme, request, verified, call.now)?;
        if !call.source.allows(&draft.event_type) {
            return Err(call.refuse(ErrorCode::EventTypeNotAllowed, None));
        }
        let region = self.region.as_deref();
        let row = draft.row(call.source, &call.inbound.body, region, self.kick.is_some());
        let storing = async {
            match self.connections.run(&Ingest(&row)).await? {
                Ingested::Stored { deliveries } => {
                    tracing::info!(source.name = call.name(), event.id = %draft.event_id(),
                        event.deliveries = deliveries.len(), body.length = request.body.len(),
                        "an event was stored");
                    Ok((Answer::stored(draft.event_id()), deliveries))
                }
                Ingested::Duplicate => {
                    let find = FirstEventId {
                        source_id: call.source.record.source_id,
                        external_event_id: draft.key(),
                    };
                    let first = self.connections.run(&find).await?;
                    tracing::info!(
                        source.name = call.name(),
                        event.id = first.map(tracing::field::display),
                        "an event had been stored before"
                    );
                    Ok((Answer::duplicate(first), Vec::new()))
                }
            }
        };
        let (answer, deliveries) = timeout(call.store_time_left, storing)
            .await
            .unwrap_or(Err(StoreError::Silent))
            .map_err(|error| store_unavailable("an event could not be stored", &error))?;
        if let Some(kick) = &self.kick {
            kick.ask(&deliveries).await;
        }
        Ok(answer)
    }
}

fn store_unavailable(what: &'static str, error: &StoreError) -> ErrorCode {
    tracing::error!(
        error = error as &dyn std::error::Error,
        error.sqlstate = error.sqlstate(),
        "{what}"
    );
    ErrorCode::StoreUnavailable
}
