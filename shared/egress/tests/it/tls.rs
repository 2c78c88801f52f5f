//! OUT-09 over TLS: the certificate is always checked.

use std::sync::Arc;

use hookstead_domain::ErrorClass;
use hookstead_egress::{Egress, EgressError, EgressSettings, SendFailure};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::server::{Server, Session, answer_all, ok};
use crate::support::{NAME, http, https, post, settings, values};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// An authority of our own.
fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

fn acceptor(params: &CertificateParams, authority: &Authority, alpn: &[&str]) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

fn trusting(authority: &Authority) -> Egress {
    let mut settings = settings();
    settings.extra_roots.push(authority.der().clone());
    Egress::new(settings).unwrap()
}

/// What a send to a server with this certificate fails with. The server never gets to
/// see a request, over TLS or in the clear.
async fn failure(
    params: CertificateParams,
    signer: &Authority,
    trusted: &Authority,
) -> SendFailure {
    let tls = acceptor(&params, signer, &[]);
    let server = Server::start_tls(tls, |session| answer_all(session, ok("fine"))).await;
    let client = trusting(trusted);
    let failure = client.send(post(https(server.port()))).await.unwrap_err();
    assert!(server.requests().is_empty());
    assert_eq!(
        server.connections(),
        1,
        "there is no second try without checks"
    );
    failure
}

#[tokio::test]
async fn a_trusted_certificate_for_the_name_is_fine() {
    let authority = authority();
    let tls = acceptor(&params(NAME), &authority, &["http/1.1"]);
    let server = Server::start_tls(tls, |session| answer_all(session, ok("fine"))).await;
    let client = trusting(&authority);
    for _ in 0..2 {
        let answer = client.send(post(https(server.port()))).await.unwrap();
        assert_eq!(answer.status, 200);
    }
    assert_eq!(server.connections(), 1);
    let host = format!("{NAME}:{}", server.port());
    assert_eq!(values(&server.requests()[0], "host"), [host]);
}

#[tokio::test]
async fn out_09_an_expired_certificate_is_its_own_class() {
    let authority = authority();
    let mut expired = params(NAME);
    expired.not_before = date_time_ymd(2001, 1, 1);
    expired.not_after = date_time_ymd(2002, 1, 1);
    let class = failure(expired, &authority, &authority).await.class;
    assert_eq!(class, ErrorClass::TlsCertificateExpired);
    let mut early = params(NAME);
    early.not_before = date_time_ymd(4000, 1, 1);
    let class = failure(early, &authority, &authority).await.class;
    assert_eq!(class, ErrorClass::TlsCertificateExpired);
}

#[tokio::test]
async fn out_09_a_certificate_for_another_host_is_its_own_class() {
    let authority = authority();
    for name in ["other.example.com", "example.com", "*.com", "127.0.0.1"] {
        let class = failure(params(name), &authority, &authority).await.class;
        assert_eq!(class, ErrorClass::TlsWrongHost, "{name}");
    }
}

#[tokio::test]
async fn out_09_a_certificate_of_an_unknown_authority_is_its_own_class() {
    let failure = failure(params(NAME), &authority(), &authority()).await;
    assert_eq!(failure.class, ErrorClass::TlsUntrusted);
    assert_eq!(failure.detail, "tls");
}

#[tokio::test]
async fn out_09_what_is_not_tls_is_its_own_class() {
    let client = trusting(&authority());
    // A server that speaks HTTP where TLS is expected.
    let plain = Server::start(|mut session: Session| async move {
        session.say(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        session.hang().await;
    })
    .await;
    let failure = client.send(post(https(plain.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TlsHandshake);
    assert_eq!(plain.connections(), 1);
    // One that speaks another protocol over TLS alone.
    let authority = authority();
    let tls = acceptor(&params(NAME), &authority, &["h2"]);
    let server = Server::start_tls(tls, |session| answer_all(session, ok("fine"))).await;
    let client = trusting(&authority);
    let failure = client.send(post(https(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TlsHandshake);
}

#[tokio::test]
async fn out_09_a_server_that_wants_a_certificate_of_ours_is_its_own_class() {
    // In TLS 1.3 its refusal comes after our side of the handshake is over.
    let authority = authority();
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = KeyPair::generate().unwrap();
    let certificate = params(NAME).signed_by(&key, &authority).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let server = Server::start_tls(tls, |session| answer_all(session, ok("fine"))).await;
    let client = trusting(&authority);
    let failure = client.send(post(https(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TlsHandshake);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_literal_address_needs_a_certificate_for_that_address() {
    let authority = authority();
    for (name, fine) in [("127.0.0.1", true), (NAME, false)] {
        let tls = acceptor(&params(name), &authority, &[]);
        let server = Server::start_tls(tls, |session| answer_all(session, ok("fine"))).await;
        let url = format!("https://127.0.0.1:{}/", server.port());
        let sent = trusting(&authority).send(post(url)).await;
        assert_eq!(sent.is_ok(), fine, "{name}");
    }
}

#[tokio::test]
async fn tls_that_ends_without_farewell_ends_a_body_without_length() {
    // The script returns without a close_notify.
    let authority = authority();
    let tls = acceptor(&params(NAME), &authority, &[]);
    let server = Server::start_tls(tls, |mut session: Session| async move {
        session.request().await;
        session.say(b"HTTP/1.1 200 OK\r\n\r\nall of it").await;
    })
    .await;
    let client = trusting(&authority);
    let answer = client.send(post(https(server.port()))).await.unwrap();
    assert_eq!(&answer.body_prefix[..], b"all of it");
    // Where a length was announced, the same end is a truncation.
    let tls = acceptor(&params(NAME), &authority, &[]);
    let server = Server::start_tls(tls, |mut session: Session| async move {
        session.request().await;
        session
            .say(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\npart")
            .await;
    })
    .await;
    let failure = client.send(post(https(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TruncatedBody);
}

#[tokio::test]
async fn http_needs_to_be_allowed() {
    let server = Server::answering(ok("fine")).await;
    let mut request = post(http(server.port()));
    request.allow_http = false;
    let client = Egress::new(settings()).unwrap();
    let failure = client.send(request).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::InvalidDestination);
    assert_eq!(failure.detail, "not_https");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn private_roots_are_read_from_pem() {
    let authority = authority();
    let mut settings = EgressSettings::default();
    settings.trust_pem(pem(&authority).as_bytes()).unwrap();
    assert_eq!(settings.extra_roots, [authority.der().clone()]);
    for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n"] {
        let error = settings.trust_pem(text.as_bytes()).unwrap_err();
        assert!(matches!(error, EgressError::Pem(_)), "{text}");
    }
    settings.extra_roots.push(b"no certificate".to_vec().into());
    let error = Egress::new(settings).err().unwrap();
    assert!(matches!(error, EgressError::Root(_)));
}

fn pem(authority: &Authority) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(authority.der());
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    let lines = lines.join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}
