//! A sealed secret and its format; see the module above.

use std::fmt;

use hookstead_domain::SubscriptionId;

use super::cipher::{NONCE_BYTES, TAG_BYTES};

/// The version of the format.
const VERSION: u8 = 1;

/// What the authenticated bytes start with, so that nothing sealed for another purpose
/// under the same key opens here.
const LABEL: &[u8] = b"hookstead subscription secret";

/// A sealed secret, as it stands in the database: two columns.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The sealed bytes.
    pub bytes: Vec<u8>,
    /// The key that wrapped the data key inside.
    pub key_id: String,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("bytes", &self.bytes.len())
            .field("key_id", &self.key_id)
            .finish()
    }
}

/// The parts of sealed bytes.
pub(super) struct Parts<'a> {
    pub(super) wrapped: &'a [u8],
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) encrypted: &'a [u8],
    /// All bytes before the encrypted ones.
    pub(super) head: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Takes sealed bytes apart; `None` where they are of no known format.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (wrapped, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let (nonce, encrypted) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let whole = *version == VERSION && !wrapped.is_empty() && encrypted.len() > TAG_BYTES;
        whole.then(|| Self {
            wrapped,
            nonce: *nonce,
            encrypted,
            head: &bytes[..bytes.len() - encrypted.len()],
        })
    }
}

/// The bytes before the encrypted ones. `None` where the wrapped key is too long for the format.
pub(super) fn head(wrapped: &[u8], nonce: &[u8; NONCE_BYTES]) -> Option<Vec<u8>> {
    let length = u16::try_from(wrapped.len()).ok()?;
    let mut head = vec![VERSION];
    head.extend_from_slice(&length.to_be_bytes());
    head.extend_from_slice(wrapped);
    head.extend_from_slice(nonce);
    Some(head)
}

/// What is authenticated besides the secret. Only the last part has no fixed or written
/// length, so no two different inputs give the same bytes.
pub(super) fn authenticated(context: SubscriptionId, key_id: &str, head: &[u8]) -> Vec<u8> {
    let mut bytes = LABEL.to_vec();
    bytes.extend_from_slice(context.as_uuid().as_bytes());
    bytes.extend_from_slice(&(key_id.len() as u64).to_be_bytes());
    bytes.extend_from_slice(key_id.as_bytes());
    bytes.extend_from_slice(head);
    bytes
}
