//! The connections of all clients.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hookstead_aws::Aws;
use hookstead_aws::queue::{QueueDepth as _, SqsQueue};
use rcgen::{CertificateParams, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A TLS server whose certificate no authority has signed. Gives its port, and what the
/// client says of the first handshake.
async fn untrusted() -> (u16, tokio::task::JoinHandle<std::io::Result<()>>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handshake = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        acceptor.accept(stream).await.map(|_| ())
    });
    (port, handshake)
}

#[tokio::test]
async fn a_certificate_of_no_known_authority_is_refused() {
    let (port, handshake) = untrusted().await;
    let aws = Aws::read(|name| match name {
        "AWS_ENDPOINT_URL" => Some(format!("https://localhost:{port}")),
        "AWS_REGION" => Some("us-east-1".to_owned()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
        _ => None,
    })
    .unwrap();
    let queue = SqsQueue::new(&aws, "https://queue.test/1/q");
    let error = queue.depth().await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
    let told = handshake.await.unwrap().unwrap_err().to_string();
    assert!(told.contains("UnknownCA"), "{told}");
}
