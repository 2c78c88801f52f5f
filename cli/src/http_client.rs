//! One HTTP/1.1 request, sent as it is: no redirects, no proxy, no header added
//! but the ones HTTP needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

use crate::error::Error;
use crate::latin1;
use crate::raw_request::RawRequest;

/// How long the whole exchange may take: longer than any provider waits.
const WITHIN: Duration = Duration::from_secs(30);

/// Most of an answer that is read. Receivers answer with a few hundred bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What came back.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// Sends the request to the address it is for.
pub(crate) async fn send(request: &RawRequest, url: &Url) -> Result<Received, Error> {
    let exchange = tokio::time::timeout(WITHIN, exchange(request, url));
    let answer = match exchange.await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", WITHIN.as_secs()).into()),
    };
    answer.map_err(|source| Error::Http {
        url: url.origin().ascii_serialization(),
        source,
    })
}

async fn exchange(request: &RawRequest, url: &Url) -> Result<Received, Cause> {
    let host = url
        .host_str()
        .ok_or("the address names no host")?
        .to_owned();
    let port = url
        .port_or_known_default()
        .ok_or("the address has no port")?;
    // An IPv6 address stands in brackets in a URL and without them in a socket address.
    let dialled = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let stream = TcpStream::connect((dialled.as_str(), port)).await?;
    match url.scheme() {
        "http" => over(stream, request, url).await,
        "https" => {
            let name = ServerName::try_from(dialled)?;
            over(tls()?.connect(name, stream).await?, request, url).await
        }
        other => Err(format!("{other} is neither http nor https").into()),
    }
}

fn tls() -> Result<TlsConnector, Cause> {
    let roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn over<S>(stream: S, request: &RawRequest, url: &Url) -> Result<Received, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the exchange; what it has to say is said by the answer.
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(to_http(request, url)?).await;
    let received = match answer {
        Ok(answer) => read(answer).await,
        Err(error) => Err(error.into()),
    };
    connection.abort();
    received
}

fn to_http(request: &RawRequest, url: &Url) -> Result<Request<Full<Bytes>>, Cause> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut built = Request::builder()
        .method(request.method.as_str())
        .uri(target);
    if let Some(headers) = built.headers_mut() {
        for (name, value) in request.headers.iter() {
            let value = HeaderValue::from_bytes(&latin1::encode(value))?;
            headers.append(HeaderName::try_from(name)?, value);
        }
        if !headers.contains_key(http::header::HOST) {
            headers.insert(http::header::HOST, HeaderValue::try_from(authority(url))?);
        }
    }
    Ok(built.body(Full::new(Bytes::from(request.body.clone())))?)
}

/// Host and, where it is not the scheme's own, port.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn read(answer: Response<hyper::body::Incoming>) -> Result<Received, Cause> {
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES)
        .collect()
        .await?
        .to_bytes();
    let headers = head.headers.iter();
    Ok(Received {
        status: head.status.as_u16(),
        headers: headers
            .map(|(name, value)| (name.to_string(), latin1::decode(value.as_bytes())))
            .collect(),
        body,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn https_has_roots_and_a_provider() {
        assert!(super::tls().is_ok());
    }
}
