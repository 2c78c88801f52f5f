//! What one process decides about its outgoing requests.

use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::Error as TlsError;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};

use crate::address::AllowList;
use crate::resolver::{Resolver, SystemResolver};

/// Most of an answer's body that is read, in bytes. What decides stands in the head; the
/// body is read to tell equal refusals apart and to keep the connection usable.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// Longest that an unused connection is kept. Many servers close theirs after 60 s or
/// more, so most are still open then; and a destination that moved is noticed.
pub const IDLE: Duration = Duration::from_secs(30);

/// Most unused connections to one destination: a busy worker sends as many at a time.
pub const MAX_IDLE_PER_DESTINATION: usize = 64;

/// Most unused connections in all: a quarter of the file handles of a Lambda function.
pub const MAX_IDLE: usize = 256;

/// Longest life of a connection, busy or not. Names are asked again after it, so that
/// a destination's change of address reaches its busiest callers too.
pub const MAX_CONNECTION_AGE: Duration = Duration::from_secs(300);

/// Settings of an [`Egress`](crate::Egress). The default is right for production.
#[derive(Clone)]
pub struct EgressSettings {
    /// Addresses that may be called although they are not public. Only the operator of
    /// the process may extend this, never a subscription.
    pub allowed: AllowList,
    /// Who is asked for the addresses of a name.
    pub resolver: Arc<dyn Resolver>,
    /// Roots that are trusted beside those of the web: private authorities.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Most of an answer's body that is read, in bytes.
    pub max_body_bytes: usize,
    /// Longest that an unused connection is used again. Zero: never.
    pub idle: Duration,
    /// Most unused connections to one destination.
    pub max_idle_per_destination: usize,
    /// Most unused connections in all.
    pub max_idle: usize,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self {
            allowed: AllowList::none(),
            resolver: Arc::new(SystemResolver),
            extra_roots: Vec::new(),
            max_body_bytes: MAX_BODY_BYTES,
            idle: IDLE,
            max_idle_per_destination: MAX_IDLE_PER_DESTINATION,
            max_idle: MAX_IDLE,
        }
    }
}

impl EgressSettings {
    /// Trusts every certificate of a PEM file as a root.
    ///
    /// # Errors
    ///
    /// [`EgressError::Pem`] where the text is not PEM, or has no certificate.
    pub fn trust_pem(&mut self, text: &[u8]) -> Result<(), EgressError> {
        let roots: Vec<_> = CertificateDer::pem_slice_iter(text)
            .collect::<Result<_, _>>()
            .map_err(EgressError::Pem)?;
        if roots.is_empty() {
            return Err(EgressError::Pem(pem::Error::NoItemsFound));
        }
        self.extra_roots.extend(roots);
        Ok(())
    }
}

/// Why there can be no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// A root certificate cannot be used.
    #[error("a root certificate cannot be used")]
    Root(#[source] TlsError),
    /// A file of root certificates cannot be read.
    #[error("the root certificates are not PEM")]
    Pem(#[source] pem::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] TlsError),
}
