//! Keyed hashes, plain hashes and public-key signatures behind one name each.

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::public_key::PublicAlgorithm;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// HMAC with SHA-1.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-384.
    HmacSha384,
    /// HMAC with SHA-512.
    HmacSha512,
    /// HMAC with MD5.
    HmacMd5,
    /// SHA-256 of a text that holds the secret.
    Sha256,
    /// Ed25519.
    Ed25519,
    /// ECDSA on P-256 with SHA-256, signature in DER.
    EcdsaP256Sha256,
    /// RSA PKCS#1 v1.5 with SHA-1.
    RsaSha1,
    /// RSA PKCS#1 v1.5 with SHA-256.
    RsaSha256,
}

macro_rules! hmac {
    ($hash:ty, $key:expr, $pieces:expr) => {{
        let mut mac = Hmac::<$hash>::new_from_slice($key).expect("HMAC takes keys of any length");
        for piece in $pieces {
            mac.update(piece.as_ref());
        }
        mac.finalize().into_bytes().to_vec()
    }};
}

impl Algorithm {
    /// Name for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::HmacSha1 => "HMAC-SHA1",
            Self::HmacSha256 => "HMAC-SHA256",
            Self::HmacSha384 => "HMAC-SHA384",
            Self::HmacSha512 => "HMAC-SHA512",
            Self::HmacMd5 => "HMAC-MD5",
            Self::Sha256 => "SHA-256 over the secret",
            Self::Ed25519 => "Ed25519",
            Self::EcdsaP256Sha256 => "ECDSA-P256-SHA256",
            Self::RsaSha1 => "RSA-SHA1",
            Self::RsaSha256 => "RSA-SHA256",
        }
    }

    pub(crate) fn public(self) -> Option<PublicAlgorithm> {
        match self {
            Self::Ed25519 => Some(PublicAlgorithm::Ed25519),
            Self::EcdsaP256Sha256 => Some(PublicAlgorithm::EcdsaDer),
            Self::RsaSha1 => Some(PublicAlgorithm::RsaSha1),
            Self::RsaSha256 => Some(PublicAlgorithm::RsaSha256),
            _ => None,
        }
    }

    /// The digest of `pieces` in order. Public-key algorithms have none.
    pub(crate) fn digest(self, key: &[u8], pieces: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
        Some(match self {
            Self::HmacSha1 => hmac!(Sha1, key, pieces),
            Self::HmacSha256 => hmac!(Sha256, key, pieces),
            Self::HmacSha384 => hmac!(Sha384, key, pieces),
            Self::HmacSha512 => hmac!(Sha512, key, pieces),
            Self::HmacMd5 => hmac!(Md5, key, pieces),
            Self::Sha256 => sha256(pieces),
            Self::Ed25519 | Self::EcdsaP256Sha256 | Self::RsaSha1 | Self::RsaSha256 => return None,
        })
    }
}

/// SHA-256 of `pieces` in order.
pub(crate) fn sha256(pieces: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece.as_ref());
    }
    hash.finalize().to_vec()
}

/// Lower-case hex of the SHA-256 of `data`.
pub(crate) fn sha256_hex(data: &[u8]) -> String {
    hex::encode(Sha256::digest(data))
}

/// Whether two secrets-dependent texts are the same, in time that does not depend on where they
/// differ.
pub(crate) fn same(left: &[u8], right: &[u8]) -> bool {
    use subtle::ConstantTimeEq as _;
    left.ct_eq(right).into()
}
