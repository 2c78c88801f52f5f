//! What is sent.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use hookstead_domain::ErrorClass;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;

use crate::failure::{self, Cause};
use crate::target::Target;

/// Longest that a request may take whatever its deadline says: an hour, beyond every
/// timeout that a retry policy can have.
const MAX_DEADLINE: Duration = Duration::from_secs(3600);

/// Headers that belong to the connection or to the framing of the message. The client
/// writes those that are needed; from anybody else they could end a message early.
pub(crate) const FRAMING: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// One request.
///
/// Debug output has lengths alone: addresses, headers and bodies are the customer's.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// The method.
    pub method: Method,
    /// Where to. It is checked again when it is sent, whatever checked it before.
    pub url: String,
    /// Headers. Those of the connection and of the framing are the client's own, and
    /// are left out where they are in here.
    pub headers: HeaderMap,
    /// The body, sent exactly as it is.
    pub body: Bytes,
    /// How long everything may take: asking for the name, dialling, TLS, writing, reading.
    pub deadline: Duration,
    /// Whether http will do.
    pub allow_http: bool,
}

impl OutgoingRequest {
    pub(crate) fn bounded_deadline(&self) -> Duration {
        self.deadline.min(MAX_DEADLINE)
    }

    /// The request as it is written on a connection to `target`.
    pub(crate) fn to_http(&self, target: &Target) -> Result<Request<Full<Bytes>>, Cause> {
        let unwritable = || Cause::new(ErrorClass::InvalidDestination, failure::REQUEST);
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target.request_uri().map_err(|_| unwritable())?;
        let mut headers = self.headers.clone();
        for name in FRAMING {
            headers.remove(name);
        }
        let host = HeaderValue::try_from(target.authority()).map_err(|_| unwritable())?;
        headers.insert(http::header::HOST, host);
        *request.headers_mut() = headers;
        Ok(request)
    }
}

impl fmt::Debug for OutgoingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("method", &self.method)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
