//! From stored secrets to usable ones.

use std::pin::Pin;

use hookstead_aws::keys::{OpenError, Sealed, Sealer};
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
    /// The code, at most 100 characters.
    pub code: String,
}

impl SecretUnavailable {
    /// With this code.
    #[must_use]
    pub fn new(code: &str) -> Self {
        let code = code.chars().take(MAX_CODE_CHARS).collect();
        Self { code }
    }
}

/// Longest code: those of AWS are a few words.
const MAX_CODE_CHARS: usize = 100;

impl OpenSecrets for Sealer {
    fn open<'a>(
        &'a self,
        sealed: &'a SealedSecret,
        subscription: SubscriptionId,
    ) -> OpeningSecret<'a> {
        Box::pin(async move {
            let sealed = Sealed {
                bytes: sealed.bytes.clone(),
                key_id: sealed.key_id.clone(),
            };
            let opened = Self::open(self, &sealed, subscription).await;
            opened.map_err(|error| SecretUnavailable::new(code(&error)))
        })
    }
}

fn code(error: &OpenError) -> &str {
    match error {
        OpenError::Key(error) => error.code(),
        OpenError::Format => "sealed_format",
        OpenError::NotAuthentic => "sealed_not_authentic",
    }
}

/// For a process that has no key: every secret is unavailable.
#[derive(Clone, Copy, Debug)]
pub struct NoKeys;

impl OpenSecrets for NoKeys {
    fn open<'a>(&'a self, _: &'a SealedSecret, _: SubscriptionId) -> OpeningSecret<'a> {
        Box::pin(std::future::ready(Err(SecretUnavailable::new(
            "no_key_configured",
        ))))
    }
}
