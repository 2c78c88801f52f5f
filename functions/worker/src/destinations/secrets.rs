//! From stored secrets to usable ones.

use std::pin::Pin;

use hookstead_domain::SubscriptionId;
use hookstead_signing::Secret;
use hookstead_store::delivering::SealedSecret;

/// The future of [`OpenSecrets::open`].
pub type OpeningSecret<'a> =
    Pin<Box<dyn Future<Output = Result<Secret, SecretUnavailable>> + Send + 'a>>;

/// The right to open the signing secrets of subscriptions.
pub trait OpenSecrets: Send + Sync {
    /// Opens a secret as it is stored in the row of `subscription`.
    fn open<'a>(
        &'a self,
        sealed: &'a SealedSecret,
        subscription: SubscriptionId,
    ) -> OpeningSecret<'a>;
}

/// A secret that cannot be had at the moment, with a code that says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret cannot be used ({code})")]
pub struct SecretUnavailable {
    /// The code.
    pub code: &'static str,
}
