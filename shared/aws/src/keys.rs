//! Secrets of subscriptions, sealed: envelope encryption over a port of keys.
//!
//! A secret is encrypted with AES-256-GCM under a data key, which stands beside it,
//! wrapped by a key that never leaves its place: a key of KMS ([`KmsKeys`]), or one in a
//! local file ([`KeyFile`]). [`Sealer`] seals and opens; what it makes is [`Sealed`].
//!
//! # The format
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the version of the format, 1 |
//! | 2 | how long the wrapped data key is, the high byte first |
//! | so many | the wrapped data key |
//! | 12 | the nonce, random |
//! | rest | the secret, encrypted, and the tag of 16 bytes |
//!
//! Authenticated besides the secret are a label, the subscription's id, the key's id and
//! all bytes before the encrypted ones. So a value that is altered anywhere, or put into
//! another subscription's row, does not open.

mod cipher;
mod data_key;
mod data_keys;
mod error;
mod file;
mod kms;
mod opened;
mod sealed;
mod sealer;

pub use data_key::{DataKey, KEY_BYTES, PlainKey};
pub use data_keys::{DataKeys, KeyFuture};
pub use error::{KeyError, OpenError};
pub use file::KeyFile;
pub use kms::KmsKeys;
pub use sealed::Sealed;
pub use sealer::{MAX_KEY_AGE, MAX_KEY_USES, Sealer};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookstead_signing::Secret;
use zeroize::Zeroizing;

/// Random bytes of a new secret: the middle of the 24 to 64 that Standard Webhooks
/// allows, and as many as SHA-256 gives.
const SECRET_BYTES: usize = 32;

/// Makes a new secret for a subscription, as Standard Webhooks writes them: `whsec_` and
/// base64 of 32 random bytes.
///
/// # Errors
/// [`KeyError::Unavailable`] where the system gives no random bytes.
pub fn generate_secret() -> Result<Secret, KeyError> {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    cipher::fill_random(&mut *bytes)?;
    // Room for all of it, so that no copy is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(64));
    text.push_str("whsec_");
    STANDARD.encode_string(bytes.as_slice(), &mut text);
    Ok(Secret::new(std::mem::take(&mut *text)).expect("it is not blank"))
}
