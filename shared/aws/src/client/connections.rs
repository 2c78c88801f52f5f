//! The SDK's way to the network: one pool of connections for all clients, TLS by
//! rustls with ring, and compiled-in roots. The SDK's own client is not used because it
//! brings the reading of the system's trust store, most of a cold start.

use std::error::Error;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio_rustls::rustls::crypto::ring;

/// How long opening a TCP connection may take. Within a region it is milliseconds; this
/// leaves a second try within the time of one call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a connection without work is kept: AWS closes after about a minute, and
/// using one that is being closed costs a try.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The pool.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    client: Client<HttpsConnector<TcpConnector>, SdkBody>,
}

impl Connections {
    pub(super) fn new() -> Self {
        let mut tcp = TcpConnector::new();
        // Addresses may be https.
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(ring::default_provider())
            .expect("ring knows the default versions of TLS")
            // An emulator speaks plain HTTP; AWS's own endpoints are https always.
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { client }
    }
}

impl HttpClient for Connections {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connections {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => {
                return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into())));
            }
        };
        let answer = self.client.request(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await.map_err(classified)?;
            let answer = answer.map(SdkBody::from_body_1_x);
            HttpResponse::try_from(answer)
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Tells what may pass from what may not: the SDK tries the former again.
fn classified(error: hyper_util::client::legacy::Error) -> ConnectorError {
    let mut below: Option<&(dyn Error + 'static)> = Some(&error);
    let mut is_io = error.is_connect();
    while let Some(cause) = below {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            if io.kind() == std::io::ErrorKind::TimedOut {
                return ConnectorError::timeout(error.into());
            }
            is_io = true;
        }
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>() {
            is_io |= hyper.is_closed() || hyper.is_canceled() || hyper.is_incomplete_message();
        }
        below = cause.source();
    }
    if is_io {
        return ConnectorError::io(error.into());
    }
    ConnectorError::other(error.into(), None)
}
