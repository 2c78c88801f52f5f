//! Making signed tokens.

use serde_json::json;

use super::place::place;
use super::{SignError, SignInput, Signed};
use crate::algorithm::{Algorithm, sha256_hex};
use crate::encoding::Encoding;
use crate::scheme::{HashClaim, JwtRule, Scheme};
use crate::secret::{self, Key, Parts};

/// Seconds a token we make is good for.
const TOKEN_LIFE_S: i64 = 60;

pub(super) fn token(
    scheme: &Scheme,
    rule: &JwtRule,
    parts: &Parts<'_>,
    input: &SignInput<'_>,
    mut draft: Signed,
) -> Result<Signed, SignError> {
    let needs = || SignError::NeedsPrivateKey(scheme.name.clone());
    if !rule.algorithms.iter().any(|name| name == "HS256") {
        return Err(needs());
    }
    let Ok(Key::Shared(key)) = secret::key(&scheme.secret, parts, None) else {
        return Err(SignError::NoUsableSecret);
    };
    let now_s = input.now.unix_timestamp();
    let mut claims =
        json!({ "iat": now_s, "nbf": now_s, "exp": now_s + TOKEN_LIFE_S, "jti": input.id });
    let issuer = rule
        .issuer_from_secret
        .as_deref()
        .map(|name| parts.member(name).ok_or(SignError::NoUsableSecret))
        .transpose()?
        .or(rule.issuer.as_deref());
    if let Some(issuer) = issuer {
        claims["iss"] = json!(issuer);
    }
    let hashes = [
        (&rule.body_hash, &draft.body[..]),
        (&rule.url_hash, draft.url.as_bytes()),
    ];
    for (claim, data) in hashes {
        if let Some(claim) = claim
            && !(claim.absent_when_empty && data.is_empty())
        {
            claims[claim.claim.as_str()] = json!(hash(claim, data));
        }
    }
    let header = json!({ "alg": "HS256", "typ": "JWT" }).to_string();
    let encode = |text: &str| Encoding::Base64url.encode(text.as_bytes());
    let signed = format!("{}.{}", encode(&header), encode(&claims.to_string()));
    let digest = Algorithm::HmacSha256
        .digest(&key, &[signed.as_bytes()])
        .ok_or_else(needs)?;
    let value = format!(
        "{}{signed}.{}",
        rule.prefix,
        Encoding::Base64url.encode(&digest)
    );
    place(&mut draft, &rule.from, None, &value)?;
    Ok(draft)
}

fn hash(claim: &HashClaim, data: &[u8]) -> String {
    match claim.encoding {
        Encoding::Hex => sha256_hex(data),
        other => other.encode(&crate::algorithm::sha256(&[data])),
    }
}
