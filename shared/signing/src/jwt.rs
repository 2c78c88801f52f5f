//! Signed tokens that vouch for the request.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE_NO_PAD, URL_SAFE_PAD_INDIFFERENT};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Timestamp;
use crate::algorithm::{Algorithm, same, sha256_hex};
use crate::credentials::without_word;
use crate::encoding::Encoding;
use crate::public_key::{self, PublicAlgorithm};
use crate::reason::Reason;
use crate::scheme::{HashClaim, JwtRule, SecretEncoding, SecretRule};
use crate::secret::{self, Key, Parts};
use crate::view::View;

/// Longest token read. Real ones have under one kilobyte.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// A token taken apart, not yet believed.
pub(crate) struct Token {
    algorithm: TokenAlgorithm,
    kid: Option<String>,
    /// Header and claims as they are signed.
    pub(crate) signed: String,
    signature: Vec<u8>,
    /// Claims as JSON.
    pub(crate) claims: String,
}

#[derive(Clone, Copy)]
enum TokenAlgorithm {
    Shared(Algorithm),
    Public(PublicAlgorithm),
}

impl Token {
    pub(crate) fn read(view: &View<'_>, rule: &JwtRule) -> Result<Self, Reason> {
        let values = view.texts(&rule.from);
        let value: Cow<'_, str> = values
            .first()
            .filter(|value| !value.trim().is_empty())
            .cloned()
            .ok_or(Reason::MissingSignature)?;
        if values.iter().any(|other| *other != value) {
            return Err(Reason::MalformedSignature);
        }
        let token = without_word(&value, &rule.prefix, false)
            .filter(|token| token.len() <= MAX_TOKEN_BYTES)
            .ok_or(Reason::MalformedSignature)?;
        Self::parse(token.trim_end(), rule)
    }

    fn parse(token: &str, rule: &JwtRule) -> Result<Self, Reason> {
        let wrong = || Reason::MalformedSignature;
        let (signed, signature) = token.rsplit_once('.').ok_or_else(wrong)?;
        let (header, claims) = signed.split_once('.').ok_or_else(wrong)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| wrong());
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| wrong())?;
        // Critical extensions must be understood, and none are.
        if !rule.algorithms.contains(&header.alg) || header.crit.is_some() {
            return Err(Reason::UnsupportedAlgorithm);
        }
        let algorithm = match header.alg.as_str() {
            "HS256" => TokenAlgorithm::Shared(Algorithm::HmacSha256),
            "HS384" => TokenAlgorithm::Shared(Algorithm::HmacSha384),
            "HS512" => TokenAlgorithm::Shared(Algorithm::HmacSha512),
            "ES256" => TokenAlgorithm::Public(PublicAlgorithm::EcdsaFixed),
            "RS256" => TokenAlgorithm::Public(PublicAlgorithm::RsaSha256),
            "EdDSA" => TokenAlgorithm::Public(PublicAlgorithm::Ed25519),
            _ => return Err(Reason::UnsupportedAlgorithm),
        };
        let claims = String::from_utf8(decode(claims)?).map_err(|_| wrong())?;
        // Padding behind the signature is outside what is signed, and libraries forgive it.
        let signature = URL_SAFE_PAD_INDIFFERENT
            .decode(signature)
            .map_err(|_| wrong())?;
        Ok(Self {
            algorithm,
            kid: header.kid,
            signed: signed.to_owned(),
            signature,
            claims,
        })
    }

    /// Whether the secret made this token; `None` when it holds no key of the right sort.
    pub(crate) fn fits(&self, rule: &SecretRule, parts: &Parts<'_>) -> Option<bool> {
        match self.algorithm {
            TokenAlgorithm::Shared(algorithm) => {
                // A public key is no shared secret, whatever the token claims.
                if rule.encoding == SecretEncoding::Jwk || looks_public(parts) {
                    return None;
                }
                let Ok(Key::Shared(key)) = secret::key(rule, parts, None) else {
                    return None;
                };
                let digest = algorithm.digest(&key, &[self.signed.as_bytes()])?;
                Some(same(&digest, &self.signature))
            }
            TokenAlgorithm::Public(algorithm) => {
                let mut keys = public_key::from_jwk(parts.text());
                if keys.is_empty() {
                    keys = public_key::from_text(parts.text());
                }
                keys.retain(|key| match (&key.id, &self.kid) {
                    (Some(id), Some(kid)) => id == kid,
                    (Some(_), None) => false,
                    (None, _) => true,
                });
                if keys.is_empty() {
                    return None;
                }
                let message = self.signed.as_bytes();
                Some(
                    keys.iter()
                        .any(|key| key.verifies(algorithm, message, &self.signature)),
                )
            }
        }
    }

    /// Holds the claims against the request and the clock.
    pub(crate) fn check_claims(
        &self,
        view: &View<'_>,
        rule: &JwtRule,
        issuer: Option<&str>,
        now: Timestamp,
    ) -> Result<(), (Reason, Option<i64>)> {
        let claims: Map<String, Value> =
            serde_json::from_str(&self.claims).map_err(|_| (Reason::MalformedSignature, None))?;
        for name in &rule.required {
            if claims.get(name).is_none_or(Value::is_null) {
                return Err((Reason::MissingField(format!("claim:{name}")), None));
            }
        }
        if let Some(wanted) = issuer.or(rule.issuer.as_deref())
            && (wanted.is_empty() || claims.get("iss").and_then(Value::as_str) != Some(wanted))
        {
            return Err((Reason::UnexpectedValue("claim:iss".into()), None));
        }
        in_force(&claims, rule, now)?;
        if let Some(claim) = &rule.url_hash {
            let url = view.request.url.as_bytes();
            hash_fits(&claims, claim, url).map_err(|reason| (reason, None))?;
        }
        if let Some(claim) = &rule.body_hash {
            hash_fits(&claims, claim, view.signed_body()).map_err(|reason| (reason, None))?;
        }
        Ok(())
    }
}

fn looks_public(parts: &Parts<'_>) -> bool {
    parts.text().trim_start().starts_with("-----BEGIN") || parts.member("kty").is_some()
}

/// `exp` and `nbf`, each where present, with the leeway on both sides.
fn in_force(
    claims: &Map<String, Value>,
    rule: &JwtRule,
    now: Timestamp,
) -> Result<(), (Reason, Option<i64>)> {
    let leeway = i64::from(rule.leeway_s);
    let now_s = now.unix_timestamp();
    let bound = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => whole_seconds(value)
            .map(Some)
            .ok_or((Reason::MalformedTimestamp, None)),
    };
    if let Some(exp) = bound("exp")?
        && exp <= now_s.saturating_sub(leeway)
    {
        return Err((Reason::Stale, now_s.checked_sub(exp)));
    }
    if let Some(nbf) = bound("nbf")?
        && nbf > now_s.saturating_add(leeway)
    {
        return Err((Reason::Future, now_s.checked_sub(nbf)));
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "floats saturate, which is what is wanted"
)]
fn whole_seconds(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64))
}

fn hash_fits(claims: &Map<String, Value>, rule: &HashClaim, data: &[u8]) -> Result<(), Reason> {
    let wrong = || Reason::HashMismatch(rule.claim.clone());
    let claim = claims.get(&rule.claim).filter(|value| !value.is_null());
    if rule.absent_when_empty && data.is_empty() {
        return if claim.is_some() {
            Err(wrong())
        } else {
            Ok(())
        };
    }
    let claim = claim.and_then(Value::as_str).ok_or_else(wrong)?;
    let written = match rule.encoding {
        Encoding::Hex => sha256_hex(data),
        other => other.encode(&crate::algorithm::sha256(&[data])),
    };
    if same(claim.as_bytes(), written.as_bytes()) {
        Ok(())
    } else {
        Err(wrong())
    }
}
