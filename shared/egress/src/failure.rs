//! Why nothing usable came back.

use std::error::Error as StdError;
use std::io;

use hookstead_domain::ErrorClass;
use tokio_rustls::rustls::{CertificateError, Error as TlsError};

/// A request that got no answer, or only a part of one.
///
/// `detail` is one of a fixed list of codes ([`DETAILS`]); nothing of the URL, the
/// headers or the bodies is in here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class} ({detail})")]
pub struct SendFailure {
    /// What kind of failure it is.
    pub class: ErrorClass,
    /// Where it happened, as a stable code.
    pub detail: &'static str,
    /// The status, where the answer broke off after it.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub latency_ms: u32,
}

/// A class and where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) class: ErrorClass,
    pub(crate) detail: &'static str,
}

macro_rules! details {
    ($($name:ident $code:literal $meaning:literal),+ $(,)?) => {
        $(pub(crate) const $name: &str = $code;)+

        /// Every detail of a failure with its meaning, for the reference page. Where a
        /// URL is refused, the detail is the code of [`TargetError`](crate::TargetError).
        pub const DETAILS: &[(&str, &str)] = &[$(($code, $meaning)),+];
    };
}

details! {
    DNS "dns" "The resolver said no.",
    DNS_EMPTY "dns_empty" "The name has no address.",
    DNS_ADDRESS "dns_address" "The name has an address that is not public and not allowed.",
    CONNECT "connect" "The connection could not be made.",
    TLS "tls" "TLS did not come about.",
    EXCHANGE "exchange" "The connection broke before the head of the answer was complete.",
    HEAD "head" "What came back is not HTTP.",
    HEAD_SIZE "head_size" "The head of the answer is too large.",
    BODY "body" "The answer broke off within its body.",
    TIMEOUT_DNS "timeout_dns" "No answer from the resolver in time.",
    TIMEOUT_CONNECT "timeout_connect" "No connection in time.",
    TIMEOUT_TLS "timeout_tls" "TLS took too long.",
    TIMEOUT_HEAD "timeout_head" "No head of an answer in time.",
    TIMEOUT_BODY "timeout_body" "The answer's body was not complete in time.",
    REQUEST "request" "The request cannot be written.",
}

impl Cause {
    pub(crate) const fn new(class: ErrorClass, detail: &'static str) -> Self {
        Self { class, detail }
    }

    pub(crate) const fn timeout(detail: &'static str) -> Self {
        Self::new(ErrorClass::Timeout, detail)
    }

    /// What an error of a connection means.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        if let Some(tls) = tls_error(error) {
            return Self::new(class_of_tls(tls), TLS);
        }
        Self::new(class_of_kind(error.kind()), EXCHANGE)
    }

    /// What an error of the HTTP library means, where the connection itself was sound.
    pub(crate) fn of_head(error: &hyper::Error) -> Self {
        if error.is_parse() {
            Self::new(ErrorClass::InvalidResponse, HEAD)
        } else if error.is_user() {
            Self::new(ErrorClass::Internal, REQUEST)
        } else {
            Self::new(ErrorClass::ConnectionReset, EXCHANGE)
        }
    }

    /// The same within the body.
    pub(crate) fn of_body(error: &hyper::Error) -> Self {
        let class = match io_kind(error) {
            Some(io::ErrorKind::UnexpectedEof) => ErrorClass::TruncatedBody,
            // A chunk that cannot be read.
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                ErrorClass::InvalidResponse
            }
            _ => ErrorClass::ConnectionReset,
        };
        Self::new(class, BODY)
    }
}

fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        source = error.source();
    }
    None
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

fn class_of_tls(error: &TlsError) -> ErrorClass {
    match error {
        TlsError::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => ErrorClass::TlsCertificateExpired,
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => ErrorClass::TlsWrongHost,
        TlsError::InvalidCertificate(_) => ErrorClass::TlsUntrusted,
        _ => ErrorClass::TlsHandshake,
    }
}

pub(crate) fn class_of_kind(kind: io::ErrorKind) -> ErrorClass {
    use io::ErrorKind as Kind;
    match kind {
        Kind::ConnectionRefused => ErrorClass::ConnectionRefused,
        // A packet filter says "not permitted" where a router would say "no route".
        Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown
        | Kind::AddrNotAvailable
        | Kind::PermissionDenied => ErrorClass::Unreachable,
        Kind::TimedOut => ErrorClass::Timeout,
        Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::NotConnected
        | Kind::UnexpectedEof => ErrorClass::ConnectionReset,
        // No file handles or memory left: nothing that the destination did.
        _ => ErrorClass::Internal,
    }
}
