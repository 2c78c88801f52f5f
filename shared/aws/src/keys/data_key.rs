//! Data keys.

use std::fmt;

use zeroize::Zeroizing;

/// Bytes of a data key.
pub const KEY_BYTES: usize = 32;

/// A key in the clear. Wiped from memory when dropped, never shown.
pub struct PlainKey(Zeroizing<[u8; KEY_BYTES]>);

impl PlainKey {
    /// Takes a key. `None` where it has another length than [`KEY_BYTES`].
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    /// The key, for a cipher.
    #[must_use]
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for PlainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainKey(redacted)")
    }
}

/// A new data key, in the clear and wrapped.
#[derive(Debug)]
pub struct DataKey {
    /// In the clear.
    pub plain: PlainKey,
    /// Wrapped, as it is kept beside what it encrypts. At most 65,535 bytes.
    pub wrapped: Vec<u8>,
    /// The key that wrapped it.
    pub key_id: String,
}
