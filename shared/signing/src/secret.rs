//! Secrets and the keys inside them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use serde_json::{Map, Value};
use sha1::{Digest as _, Sha1};
use thiserror::Error;
use unicode_normalization::UnicodeNormalization as _;
use zeroize::{Zeroize as _, Zeroizing};

use crate::public_key::{self, PublicKey};
use crate::scheme::{Derive, Normalise, Scheme, SecretEncoding, SecretRule, Step};
use crate::template::Piece;

/// A secret as text. Wiped from memory when dropped, never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// A text that cannot be a secret of its kind. Holds nothing of the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Nothing but blanks.
    #[error("the secret is empty")]
    Empty,
    /// A version label stands before the secret.
    #[error("the secret starts with a version label: remove `{0}` and keep the rest")]
    VersionPrefix(String),
    /// The prefix this kind needs is absent.
    #[error("the secret must start with `{0}`")]
    PrefixMissing(String),
    /// The part after the prefix is not written as this kind needs.
    #[error("the part after `{prefix}` is not {encoding}")]
    Encoding {
        /// The prefix that was found, empty where there is none.
        prefix: String,
        /// What was expected there.
        encoding: &'static str,
    },
    /// The JSON object lacks a member.
    #[error("the secret must be a JSON object with the member `{0}`")]
    MemberMissing(String),
    /// The number of characters is wrong.
    #[error("the secret must have exactly {0} characters")]
    Length(usize),
    /// No public key could be read.
    #[error("the secret holds no public key this kind can use")]
    NotAPublicKey,
}

impl Secret {
    /// Takes a secret; blanks alone are none.
    pub fn new(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = Zeroizing::new(text.into());
        if text.trim().is_empty() {
            return Err(SecretError::Empty);
        }
        Ok(Self(text))
    }

    /// The secret itself, for whoever stores it or shows it once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        let object = self.0.trim_start().starts_with('{');
        let json = object.then(|| serde_json::from_str(&self.0).ok()).flatten();
        Parts {
            text: &self.0,
            json,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// A secret text with the members it has when it is a JSON object.
pub(crate) struct Parts<'a> {
    text: &'a str,
    json: Option<Map<String, Value>>,
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        for value in self.json.iter_mut().flat_map(Map::values_mut) {
            if let Value::String(text) = value {
                text.zeroize();
            }
        }
    }
}

impl Parts<'_> {
    pub(crate) fn text(&self) -> &str {
        self.text
    }

    pub(crate) fn is_object(&self) -> bool {
        self.json.is_some()
    }

    pub(crate) fn member(&self, name: &str) -> Option<&str> {
        self.json
            .as_ref()?
            .get(name)?
            .as_str()
            .filter(|text| !text.trim().is_empty())
    }

    /// The named member of an object, or the whole text of a secret that is no object.
    fn member_or_text(&self, name: Option<&str>) -> Result<&str, SecretError> {
        match name {
            Some(name) if self.is_object() => self
                .member(name)
                .ok_or_else(|| SecretError::MemberMissing(name.to_owned())),
            _ => Ok(self.text),
        }
    }
}

/// A key ready for use.
pub(crate) enum Key {
    /// A shared key; never empty.
    Shared(Zeroizing<Vec<u8>>),
    /// Public keys, any of which may fit.
    Public(Vec<PublicKey>),
}

/// The key that `parts` holds under `rule`; `member` overrides the rule's own.
pub(crate) fn key(
    rule: &SecretRule,
    parts: &Parts<'_>,
    member: Option<&str>,
) -> Result<Key, SecretError> {
    let text = parts.member_or_text(member.or(rule.member.as_deref()))?;
    if rule
        .length
        .is_some_and(|length| text.chars().count() != length)
    {
        return Err(SecretError::Length(rule.length.unwrap_or_default()));
    }
    let text = Zeroizing::new(normalised(rule, text));
    let (encoding, stripped, prefix) = unprefixed(rule, &text)?;
    let bytes = match encoding {
        SecretEncoding::Jwk => return public(public_key::from_jwk(stripped)),
        SecretEncoding::PublicKey => return public(public_key::from_text(stripped)),
        SecretEncoding::Utf8 => Some(stripped.as_bytes().to_vec()),
        // Base64 has no blanks: one that was copied along means nothing.
        SecretEncoding::Base64 => STANDARD_PAD_INDIFFERENT.decode(stripped.trim()).ok(),
        SecretEncoding::Hex => hex::decode(stripped).ok(),
    };
    let mut bytes = Zeroizing::new(bytes.ok_or_else(|| SecretError::Encoding {
        prefix: prefix.to_owned(),
        encoding: if encoding == SecretEncoding::Hex {
            "hexadecimal"
        } else {
            "base64"
        },
    })?);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SecretError::Empty);
    }
    if rule.derive == Some(Derive::Sha1) {
        bytes = Zeroizing::new(Sha1::digest(&*bytes).to_vec());
    }
    Ok(Key::Shared(bytes))
}

fn public(keys: Vec<PublicKey>) -> Result<Key, SecretError> {
    if keys.is_empty() {
        return Err(SecretError::NotAPublicKey);
    }
    Ok(Key::Public(keys))
}

fn normalised(rule: &SecretRule, text: &str) -> String {
    match rule.normalise {
        Some(Normalise::Nfkd) if !text.is_ascii() => text.nfkd().collect(),
        Some(Normalise::Html) => unescaped(text),
        _ => text.to_owned(),
    }
}

/// Decodes the entities of `&`, `<`, `>` and quotes, by name or number, each once.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest[1..]
            .split_once(';')
            .and_then(|(name, tail)| Some((entity(name)?, tail)))
        {
            Some((character, tail)) => {
                plain.push(character);
                rest = tail;
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    let code = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        _ => match name.strip_prefix("#x").or_else(|| name.strip_prefix("#X")) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => name.strip_prefix('#')?.parse().ok()?,
        },
    };
    char::from_u32(code).filter(|character| matches!(character, '"' | '&' | '\'' | '<' | '>'))
}

/// The encoding that applies, the text without its prefix, and the prefix that was found.
fn unprefixed<'t>(
    rule: &SecretRule,
    text: &'t str,
) -> Result<(SecretEncoding, &'t str, &'t str), SecretError> {
    let Some(prefix) = rule.prefix.as_deref() else {
        return Ok((rule.encoding, text, ""));
    };
    match text.strip_prefix(prefix) {
        Some(stripped) => Ok((rule.encoding, stripped, &text[..prefix.len()])),
        None if rule.prefix_required => Err(SecretError::PrefixMissing(prefix.to_owned())),
        None => Ok((rule.without_prefix.unwrap_or(rule.encoding), text, "")),
    }
}

/// Takes a secret the way people paste it: blanks around it are dropped, a version label before
/// it is refused by name, and a text that cannot be a key of this scheme is refused at once.
pub fn import_secret(scheme: &Scheme, text: &str) -> Result<Secret, SecretError> {
    let text = text.trim();
    let secret = Secret::new(text)?;
    if let Some(prefix) = scheme.secret.prefix.as_deref()
        && let Some(at) = text.find(prefix)
        && at > 0
        && text[..at].ends_with(',')
    {
        return Err(SecretError::VersionPrefix(text[..at].to_owned()));
    }
    let parts = secret.parts();
    for member in needed_members(scheme) {
        if parts.member(member).is_none() {
            return Err(SecretError::MemberMissing(member.to_owned()));
        }
    }
    if let Some(rule) = &scheme.signature
        && !rule.keys.is_empty()
        && parts.is_object()
    {
        let usable = rule
            .keys
            .iter()
            .any(|name| key(&scheme.secret, &parts, Some(name)).is_ok());
        return usable
            .then(|| secret.clone())
            .ok_or_else(|| SecretError::MemberMissing(rule.keys[0].clone()));
    }
    match key(&scheme.secret, &parts, None) {
        // A certificate may come later, from the provider's own host.
        Err(SecretError::MemberMissing(name)) if name == "cert_pem" => {}
        other => {
            other?;
        }
    }
    drop(parts);
    Ok(secret)
}

/// Members beside the key without which nothing can verify.
fn needed_members(scheme: &Scheme) -> Vec<&str> {
    let rule = scheme.signature.as_ref();
    let templates = rule.into_iter().flat_map(|rule| &rule.content);
    let mut members: Vec<&str> = templates
        .flat_map(|template| template.pieces())
        .filter_map(|piece| match piece {
            Piece::Secret(member) => member.as_deref(),
            _ => None,
        })
        .collect();
    if rule.is_some_and(|rule| rule.step == Some(Step::Braintree)) {
        members.push("public_key");
    }
    members.extend(
        scheme
            .jwt
            .iter()
            .filter_map(|rule| rule.issuer_from_secret.as_deref()),
    );
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret = Secret::new("CANARY1").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(redacted)");
        assert!(!format!("{:?}", Some(&secret)).contains("CANARY"));
    }

    #[test]
    fn blank_secrets_are_refused() {
        for text in ["", " ", "\n\t"] {
            assert_eq!(Secret::new(text).unwrap_err(), SecretError::Empty);
        }
    }

    #[test]
    fn rot_01_imported_secrets_are_normalised_or_refused_by_name() {
        let scheme = builtin("standard-webhooks").unwrap();
        let plain = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let kept = import_secret(scheme, &format!(" {plain}\n")).unwrap();
        assert_eq!(kept.expose(), plain);
        let error = import_secret(scheme, &format!("v1,{plain}")).unwrap_err();
        assert_eq!(error, SecretError::VersionPrefix("v1,".into()));
        let error = import_secret(scheme, "whsec_not base64!").unwrap_err();
        assert!(error.to_string().contains("whsec_"), "{error}");
        assert!(!error.to_string().contains("not base64!"), "{error}");
        assert_eq!(
            import_secret(scheme, "whsec_").unwrap_err(),
            SecretError::Empty
        );
    }

    #[test]
    fn secrets_of_two_parts_are_refused_without_one_of_them() {
        let import =
            |kind: &str, text: &str| import_secret(builtin(kind).unwrap(), text).map(|_| ());
        let missing = |name: &str| Err(SecretError::MemberMissing(name.into()));
        assert_eq!(import("braintree", "private"), missing("public_key"));
        assert_eq!(
            import("braintree", r#"{"public_key":"p"}"#),
            missing("private_key")
        );
        assert_eq!(import("livekit", "secret"), missing("api_key"));
        assert_eq!(
            import("paypal", r#"{"cert_pem":"x"}"#),
            missing("webhook_id")
        );
        // The certificate may be fetched later.
        assert_eq!(import("paypal", r#"{"webhook_id":"W"}"#), Ok(()));
        assert_eq!(import("aws-sns", r#"{"topic_arn":"arn"}"#), Ok(()));
        assert_eq!(
            import("plaid", "not a key"),
            Err(SecretError::NotAPublicKey)
        );
        assert_eq!(import("box", r#"{"primary":"one"}"#), Ok(()));
        assert_eq!(import("box", r#"{"other":"one"}"#), missing("primary"));
    }

    #[test]
    fn html_entities_are_decoded_once() {
        let rule = SecretRule {
            normalise: Some(Normalise::Html),
            ..SecretRule::default()
        };
        assert_eq!(normalised(&rule, "a&amp;lt;b&gt;"), "a&lt;b>");
        assert_eq!(normalised(&rule, "&#039;&#x22;&#65;&;&"), "'\"&#65;&;&");
    }
}
