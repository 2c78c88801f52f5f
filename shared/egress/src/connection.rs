//! One connection and one exchange on it.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use hookstead_domain::ErrorClass;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::answer::MAX_PREFIX_BYTES;
use crate::failure::{self, Cause};
use crate::meter::{Meter, Metered};
use crate::target::Target;

/// Most of an answer's head that is read, in bytes: eight times what common servers
/// allow themselves. Also what an exchange may read beside the body, so that interim
/// answers and the framing of chunks cannot go on for ever.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;

/// An open connection. Dropping it closes it at once, also in the middle of an exchange.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    meter: Arc<Meter>,
    task: AbortHandle,
    /// The address at the other end.
    pub(crate) peer: IpAddr,
    /// When it was made.
    pub(crate) opened: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer as it was read.
pub(crate) struct Received {
    pub(crate) head: http::response::Parts,
    pub(crate) body: Body,
}

/// What was read of a body.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) sha256: [u8; 32],
    pub(crate) bytes: usize,
    pub(crate) cut: bool,
    pub(crate) prefix: Bytes,
}

/// An exchange that came to nothing.
pub(crate) struct Broken {
    pub(crate) cause: Cause,
    /// The status, where the answer broke off after it.
    pub(crate) status: Option<u16>,
    /// Whether not a byte of an answer had come.
    pub(crate) unanswered: bool,
}

impl Connection {
    /// Begins HTTP on a stream to `target`, over TLS if it is https.
    pub(crate) async fn begin(
        stream: TcpStream,
        target: &Target,
        tls: &TlsConnector,
        deadline: Instant,
    ) -> Result<Self, Cause> {
        let peer = stream.peer_addr().map_err(|error| connect(&error))?.ip();
        if !target.is_https() {
            return Self::over(stream, peer).await;
        }
        let name = target.server_name();
        let name = name.map_err(|error| Cause::new(error.class(), error.code()))?;
        match timeout_at(deadline, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => Self::over(stream, peer).await,
            Ok(Err(error)) => Err(tls_cause(&error)),
            Err(_) => Err(Cause::timeout(failure::TIMEOUT_TLS)),
        }
    }

    async fn over<S>(stream: S, peer: IpAddr) -> Result<Self, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let meter = Arc::new(Meter::new());
        let stream = TokioIo::new(Metered::new(stream, Arc::clone(&meter)));
        let mut http = http1::Builder::new();
        http.max_buf_size(MAX_HEAD_BYTES);
        let (sender, connection) = http
            .handshake(stream)
            .await
            .map_err(|_| Cause::new(ErrorClass::Internal, failure::CONNECT))?;
        // What it has to say when it ends, the exchange under way says.
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self {
            sender,
            meter,
            task,
            peer,
            opened: Instant::now(),
        })
    }

    /// Whether the other side, or an exchange, has ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until it can take a request; `false` where it never will.
    pub(crate) async fn is_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Sends one request and reads its answer, at most `max_body` bytes of the body.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        max_body: usize,
        deadline: Instant,
    ) -> Result<Received, Broken> {
        let limit = max_body.saturating_add(MAX_HEAD_BYTES);
        let before = self.meter.allow(u64::try_from(limit).unwrap_or(u64::MAX));
        let head = match timeout_at(deadline, self.sender.send_request(request)).await {
            Ok(Ok(head)) => head,
            Ok(Err(error)) => return Err(self.broken_head(&error, before)),
            Err(_) => {
                return Err(Broken {
                    cause: Cause::timeout(failure::TIMEOUT_HEAD),
                    status: None,
                    // Waiting longer is not what a second try is for.
                    unanswered: false,
                });
            }
        };
        let (head, body) = head_and_body(head);
        match self.read(body, max_body, deadline).await {
            Ok(body) => Ok(Received { head, body }),
            Err(cause) => Err(Broken {
                cause,
                status: Some(head.status.as_u16()),
                unanswered: false,
            }),
        }
    }

    fn broken_head(&self, error: &hyper::Error, before: u64) -> Broken {
        let too_large = Cause::new(ErrorClass::InvalidResponse, failure::HEAD_SIZE);
        let spent = self.meter.is_spent().then_some(too_large);
        let cause = spent.or(self.meter.broken());
        Broken {
            cause: cause.unwrap_or_else(|| Cause::of_head(error)),
            status: None,
            unanswered: self.meter.read() == before,
        }
    }

    async fn read(&self, mut body: Incoming, max: usize, deadline: Instant) -> Result<Body, Cause> {
        let mut digest = Sha256::new();
        let mut prefix = Vec::new();
        let mut read = Body::default();
        while !read.cut {
            let frame = match timeout_at(deadline, body.frame()).await {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) if self.meter.is_spent() => {
                    read.cut = true;
                    break;
                }
                Ok(Some(Err(error))) => return Err(self.broken_body(&error)),
                Err(_) => return Err(Cause::timeout(failure::TIMEOUT_BODY)),
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let taken = &data[..data.len().min(max - read.bytes)];
            read.cut = taken.len() < data.len();
            read.bytes += taken.len();
            digest.update(taken);
            let room = MAX_PREFIX_BYTES.saturating_sub(prefix.len());
            prefix.extend_from_slice(&taken[..taken.len().min(room)]);
        }
        read.sha256 = digest.finalize().into();
        read.prefix = prefix.into();
        Ok(read)
    }

    fn broken_body(&self, error: &hyper::Error) -> Cause {
        match self.meter.broken() {
            Some(cause) => Cause::new(cause.class, failure::BODY),
            None => Cause::of_body(error),
        }
    }
}

fn head_and_body(response: Response<Incoming>) -> (http::response::Parts, Incoming) {
    response.into_parts()
}

fn connect(error: &std::io::Error) -> Cause {
    Cause::new(failure::class_of_kind(error.kind()), failure::CONNECT)
}

fn tls_cause(error: &std::io::Error) -> Cause {
    let class = match Cause::of_io(error).class {
        // The stream just ended: servers that want no TLS, or none like ours, do that.
        ErrorClass::ConnectionReset if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorClass::TlsHandshake
        }
        class => class,
    };
    Cause::new(class, failure::TLS)
}
