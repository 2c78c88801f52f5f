//! TLS: ring, compiled-in roots, and the certificate always checked.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::settings::EgressError;

/// The one protocol that is offered. Said expressly: some servers insist on being told.
const HTTP_1_1: &[u8] = b"http/1.1";

/// A connector that trusts the web's roots and `extra`.
pub(crate) fn connector(extra: &[CertificateDer<'static>]) -> Result<TlsConnector, EgressError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for root in extra {
        roots.add(root.clone()).map_err(EgressError::Root)?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(EgressError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
