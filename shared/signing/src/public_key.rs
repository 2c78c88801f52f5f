//! Public keys from the forms providers hand them out in.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_PAD_INDIFFERENT, URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, DecodePem as _, Encode as _};
use x509_cert::spki::{ObjectIdentifier, SubjectPublicKeyInfoOwned};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Most keys read from one set. Providers publish the current and the next one.
const MAX_KEYS: usize = 10;

/// A public key with the name its set gives it.
#[derive(Debug, Clone)]
pub(crate) struct PublicKey {
    pub(crate) id: Option<String>,
    pub(crate) material: Material,
}

/// The key itself.
#[derive(Debug, Clone)]
pub(crate) enum Material {
    /// PKCS#1 DER.
    Rsa(Vec<u8>),
    /// Modulus and exponent.
    RsaParts(Vec<u8>, Vec<u8>),
    /// Uncompressed point on P-256.
    P256(Vec<u8>),
    /// The 32 bytes of an Ed25519 key.
    Ed25519(Vec<u8>),
}

/// Public-key algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublicAlgorithm {
    RsaSha1,
    RsaSha256,
    EcdsaDer,
    EcdsaFixed,
    Ed25519,
}

impl PublicKey {
    /// Whether `signature` over `message` was made with the private half of this key.
    pub(crate) fn verifies(
        &self,
        algorithm: PublicAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        match (&self.material, algorithm) {
            (Material::Rsa(der), PublicAlgorithm::RsaSha1 | PublicAlgorithm::RsaSha256) => {
                check(rsa(algorithm), der, message, signature)
            }
            (Material::RsaParts(n, e), PublicAlgorithm::RsaSha1 | PublicAlgorithm::RsaSha256) => {
                RsaPublicKeyComponents { n, e }
                    .verify(rsa(algorithm), message, signature)
                    .is_ok()
            }
            (Material::P256(point), PublicAlgorithm::EcdsaDer) => check(
                &signature::ECDSA_P256_SHA256_ASN1,
                point,
                message,
                signature,
            ),
            (Material::P256(point), PublicAlgorithm::EcdsaFixed) => check(
                &signature::ECDSA_P256_SHA256_FIXED,
                point,
                message,
                signature,
            ),
            (Material::Ed25519(key), PublicAlgorithm::Ed25519) => {
                check(&signature::ED25519, key, message, signature)
            }
            _ => false,
        }
    }
}

/// SHA-1 stays allowed: two providers still sign with it, and the choice is theirs. Keys under 2,048 bits are not.
fn rsa(algorithm: PublicAlgorithm) -> &'static signature::RsaParameters {
    if algorithm == PublicAlgorithm::RsaSha1 {
        &signature::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY
    } else {
        &signature::RSA_PKCS1_2048_8192_SHA256
    }
}

fn check(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    UnparsedPublicKey::new(algorithm, key)
        .verify(message, signature)
        .is_ok()
}

/// Keys in a PEM certificate, a PEM public key, base64 or hex of either DER, or raw Ed25519 bytes.
pub(crate) fn from_text(text: &str) -> Vec<PublicKey> {
    let text = text.trim();
    let material = if text.starts_with("-----BEGIN CERTIFICATE") {
        Certificate::from_pem(text)
            .ok()
            .and_then(|certificate| of_certificate(&certificate))
    } else if text.starts_with("-----BEGIN") {
        SubjectPublicKeyInfoOwned::from_pem(text)
            .ok()
            .and_then(|info| of_info(&info))
    } else {
        // Hex first: 64 hex digits are valid base64 too, of a key nobody has.
        hex::decode(text)
            .ok()
            .or_else(|| STANDARD_PAD_INDIFFERENT.decode(text).ok())
            .and_then(of_der)
    };
    material
        .map(|material| PublicKey { id: None, material })
        .into_iter()
        .collect()
}

fn of_der(der: Vec<u8>) -> Option<Material> {
    if der.len() == 32 {
        return Some(Material::Ed25519(der));
    }
    SubjectPublicKeyInfoOwned::from_der(&der)
        .ok()
        .and_then(|info| of_info(&info))
}

fn of_certificate(certificate: &Certificate) -> Option<Material> {
    of_info(certificate.tbs_certificate().subject_public_key_info())
}

fn of_info(info: &SubjectPublicKeyInfoOwned) -> Option<Material> {
    let key = info.subject_public_key.as_bytes()?.to_vec();
    if info.algorithm.oid == RSA {
        return Some(Material::Rsa(key));
    }
    if info.algorithm.oid == ED25519 {
        return (key.len() == 32).then_some(Material::Ed25519(key));
    }
    // P-256 alone: its object identifier is the parameter, ten bytes with tag and length.
    let parameters = info.algorithm.parameters.as_ref()?.to_der().ok()?;
    let p256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    (info.algorithm.oid == EC && parameters == p256).then_some(Material::P256(key))
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    kid: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    /// Plaid marks retired keys this way.
    expired_at: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

/// Keys of a JSON web key or a set of them. Retired keys are left out.
pub(crate) fn from_jwk(text: &str) -> Vec<PublicKey> {
    let keys = match serde_json::from_str::<JwkSet>(text) {
        Ok(set) => set.keys,
        Err(_) => serde_json::from_str::<Jwk>(text).into_iter().collect(),
    };
    keys.into_iter()
        .take(MAX_KEYS)
        .filter(|jwk| jwk.expired_at.is_none())
        .filter_map(of_jwk)
        .collect()
}

fn of_jwk(jwk: Jwk) -> Option<PublicKey> {
    let part = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("EC", Some("P-256")) => {
            let (x, y) = (part(&jwk.x)?, part(&jwk.y)?);
            if x.len() != 32 || y.len() != 32 {
                return None;
            }
            Material::P256([&[4][..], &x, &y].concat())
        }
        ("OKP", Some("Ed25519")) => Material::Ed25519(part(&jwk.x)?),
        ("RSA", _) => Material::RsaParts(part(&jwk.n)?, part(&jwk.e)?),
        _ => return None,
    };
    Some(PublicKey {
        id: jwk.kid,
        material,
    })
}
