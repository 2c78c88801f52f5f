//! The port that every store of secrets implements.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use hookstead_signing::Secret;
use time::OffsetDateTime;

/// Which version of a secret this is. The words are those of AWS Secrets
/// Manager, whose staging labels make two live secrets ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionLabel {
    /// The secret in force.
    Current,
    /// The next secret, already accepted so that the provider may switch at any moment.
    Pending,
    /// The last secret, accepted until its overlap ends.
    Previous,
}

impl VersionLabel {
    /// The staging label as AWS writes it; recorded with every verified event.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "AWSCURRENT",
            Self::Pending => "AWSPENDING",
            Self::Previous => "AWSPREVIOUS",
        }
    }
}

impl fmt::Display for VersionLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One version of a source's secret. Prints no secret.
#[derive(Debug)]
pub struct SecretVersion {
    /// Which version this is.
    pub label: VersionLabel,
    /// The secret itself.
    pub secret: Secret,
    /// End of the overlap, for a previous version that has one written down.
    pub not_after: Option<OffsetDateTime>,
}

impl SecretVersion {
    /// Whether this version may verify a request at `now`.
    #[must_use]
    pub fn is_live(&self, now: OffsetDateTime) -> bool {
        self.not_after.is_none_or(|end| now < end)
    }
}

/// Why the versions of a secret could not be read. Names references, never values.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no such secret.
    #[error("no secret is stored under the reference '{reference}'")]
    NotFound {
        /// The reference, as the source holds it.
        reference: String,
    },
    /// The reference is of a form that this provider does not read. It is not
    /// quoted: it may be a secret that was pasted in the wrong place.
    #[error("the secret reference is not of the form env:NAME or file:PATH")]
    UnknownReference,
    /// A version is there but cannot be used as a secret, for instance because it is blank.
    #[error("the {label} version of the secret '{reference}' cannot be used")]
    Unusable {
        /// The reference, as the source holds it.
        reference: String,
        /// The version concerned.
        label: VersionLabel,
        /// What is wrong with it.
        #[source]
        source: hookstead_signing::SecretError,
    },
    /// The store of secrets could not be reached or read; it may pass.
    #[error("the secret '{reference}' could not be read")]
    Unavailable {
        /// The reference, as the source holds it.
        reference: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FetchError {
    /// Whether trying again later can help without anybody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

/// The future of one fetch.
pub type FetchFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<SecretVersion>, FetchError>> + Send + 'a>>;

/// What became of a secret that a provider chose itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is kept, as the current version.
    Kept,
    /// There is a secret already; that one stays.
    AlreadySet,
    /// This store takes no secrets.
    NotSupported,
}

/// The future of one offer.
pub type OfferFuture<'a> = Pin<Box<dyn Future<Output = Result<Offered, FetchError>> + Send + 'a>>;

/// A store of secrets.
pub trait SecretProvider: Send + Sync {
    /// Reads every version under `reference`: current, and pending and previous where they exist.
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a>;

    /// Keeps a secret that the provider of the webhooks chose in its handshake,
    /// where there is none yet.
    ///
    /// Whoever knows the address can send such a handshake, so a secret that is
    /// there is never replaced by one.
    fn offer<'a>(&'a self, _reference: &'a str, _secret: &'a Secret) -> OfferFuture<'a> {
        Box::pin(std::future::ready(Ok(Offered::NotSupported)))
    }
}

impl<P: SecretProvider + ?Sized> SecretProvider for Arc<P> {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        (**self).fetch(reference)
    }

    fn offer<'a>(&'a self, reference: &'a str, secret: &'a Secret) -> OfferFuture<'a> {
        (**self).offer(reference, secret)
    }
}
