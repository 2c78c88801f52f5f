//! AES-256-GCM, by ring.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::{KeyError, PlainKey};

/// Bytes of a nonce. Random ones are safe for 2^32 values under one key; a data key is
/// used far less often.
pub(super) const NONCE_BYTES: usize = NONCE_LEN;

/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 16;

/// What does not open: another key, other authenticated bytes, or altered ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAuthentic;

pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), KeyError> {
    getrandom::fill(bytes).map_err(|_| KeyError::Unavailable {
        code: "no_random_bytes".to_owned(),
        cause: None,
    })
}

pub(super) fn nonce() -> Result<[u8; NONCE_BYTES], KeyError> {
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    Ok(nonce)
}

/// Encrypts; gives the encrypted bytes and the tag.
pub(super) fn encrypt(
    key: &PlainKey,
    nonce: [u8; NONCE_BYTES],
    authenticated: &[u8],
    plain: &[u8],
) -> Vec<u8> {
    // Room for the tag, so that no unencrypted copy is left behind by growing.
    let mut bytes = Vec::with_capacity(plain.len() + TAG_BYTES);
    bytes.extend_from_slice(plain);
    ring_key(key)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(authenticated),
            &mut bytes,
        )
        .expect("a secret is far below the cipher's limit of 64 GiB");
    bytes
}

/// Decrypts what [`encrypt`] gave.
pub(super) fn decrypt(
    key: &PlainKey,
    nonce: [u8; NONCE_BYTES],
    authenticated: &[u8],
    encrypted: &[u8],
) -> Result<Zeroizing<Vec<u8>>, NotAuthentic> {
    let mut bytes = Zeroizing::new(encrypted.to_vec());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let plain = ring_key(key)
        .open_in_place(nonce, Aad::from(authenticated), &mut bytes)
        .map_err(|_| NotAuthentic)?
        .len();
    bytes.truncate(plain);
    Ok(bytes)
}

fn ring_key(key: &PlainKey) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key.bytes()).expect("the key has the cipher's length");
    LessSafeKey::new(key)
}
