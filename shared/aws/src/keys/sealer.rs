//! Sealing and opening.

use std::fmt;
use std::time::Duration;

use hookstead_domain::SubscriptionId;
use hookstead_signing::Secret;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::opened::Opened;
use super::sealed::{Parts, authenticated, head};
use super::{DataKey, DataKeys, KeyError, OpenError, Sealed, cipher};

/// How long a data key stays in memory, in the clear. A key that is disabled or taken away
/// works on for so long; a worker asks KMS at most once in so long for each data key.
pub const MAX_KEY_AGE: Duration = Duration::from_secs(5 * 60);

/// How many secrets one data key seals: few enough that one that gets known opens little,
/// enough that importing thousands is not thousands of calls.
pub const MAX_KEY_USES: u32 = 100;

/// How long a failure to make a data key is remembered, so that a storm asks once.
const FAILURE_AGE: Duration = Duration::from_secs(1);

/// Seals secrets of subscriptions and opens them.
///
/// One call at a time makes or unwraps a data key; whoever needs the same one waits for it.
pub struct Sealer {
    keys: Box<dyn DataKeys>,
    current: Mutex<Current>,
    opened: Opened,
}

/// The data key that seals.
#[derive(Default)]
enum Current {
    #[default]
    None,
    Ready {
        key: DataKey,
        since: Instant,
        uses: u32,
    },
    Failed {
        error: KeyError,
        since: Instant,
    },
}

impl Sealer {
    /// A sealer over these keys. Nothing is asked of them yet.
    #[must_use]
    pub fn new(keys: impl DataKeys + 'static) -> Self {
        Self {
            keys: Box::new(keys),
            current: Mutex::default(),
            opened: Opened::new(MAX_KEY_AGE),
        }
    }

    /// Seals a secret for a subscription; it opens for no other.
    ///
    /// # Errors
    /// Where no data key can be had.
    pub async fn seal(&self, secret: &Secret, context: SubscriptionId) -> Result<Sealed, KeyError> {
        let mut current = self.current.lock().await;
        current.renew(&*self.keys).await;
        let key = current.use_key()?;
        let nonce = cipher::nonce()?;
        let mut bytes =
            head(&key.wrapped, &nonce).ok_or_else(|| KeyError::refused("wrapped_key_too_long"))?;
        let authenticated = authenticated(context, &key.key_id, &bytes);
        let plain = secret.expose().as_bytes();
        bytes.extend(cipher::encrypt(&key.plain, nonce, &authenticated, plain));
        Ok(Sealed {
            bytes,
            key_id: key.key_id.clone(),
        })
    }

    /// Opens what was sealed for this subscription.
    ///
    /// # Errors
    /// Where the key cannot be used, or the value is not what was sealed.
    pub async fn open(
        &self,
        sealed: &Sealed,
        context: SubscriptionId,
    ) -> Result<Secret, OpenError> {
        let parts = Parts::of(&sealed.bytes).ok_or(OpenError::Format)?;
        let held = self
            .opened
            .get(&*self.keys, parts.wrapped, &sealed.key_id)
            .await;
        let authenticated = authenticated(context, &sealed.key_id, parts.head);
        let plain = cipher::decrypt(held.key()?, parts.nonce, &authenticated, parts.encrypted)
            .map_err(|_| OpenError::NotAuthentic)?;
        // Only secrets are sealed, and a secret is text that is not blank.
        let text = std::str::from_utf8(&plain).map_err(|_| OpenError::Format)?;
        Secret::new(text).map_err(|_| OpenError::Format)
    }
}

impl Current {
    /// Makes a new key where there is none that may be used once more.
    async fn renew(&mut self, keys: &dyn DataKeys) {
        let usable = match self {
            Self::None => false,
            Self::Ready { since, uses, .. } => {
                since.elapsed() < MAX_KEY_AGE && *uses < MAX_KEY_USES
            }
            Self::Failed { since, .. } => since.elapsed() < FAILURE_AGE,
        };
        if usable {
            return;
        }
        let made = keys.generate().await;
        let since = Instant::now();
        *self = match made {
            Ok(key) => Self::Ready {
                key,
                since,
                uses: 0,
            },
            Err(error) => Self::Failed { error, since },
        };
    }

    fn use_key(&mut self) -> Result<&DataKey, KeyError> {
        match self {
            Self::Ready { key, uses, .. } => {
                *uses += 1;
                Ok(key)
            }
            Self::Failed { error, .. } => Err(error.clone()),
            Self::None => Err(KeyError::refused("no_data_key")),
        }
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}
