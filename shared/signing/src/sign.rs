//! Signing, for tests, benches and `hookstead send`.

mod place;
mod token;

use serde_json::json;
use thiserror::Error;

use crate::Timestamp;
use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::form;
use crate::location::{Location, ValueRule};
use crate::plan::{self, Data};
use crate::request::{Headers, Request};
use crate::scheme::{Format, Scheme, SecretEncoding, SignatureRule, Step, TimestampRule, Unit};
use crate::secret::{self, Key, Parts, Secret};
use crate::step;
use crate::template::Piece;
use crate::verify::resolve;
use crate::view::View;
use place::{body_json, elements, escaped, place, set_in_body};
use token::token;

pub(crate) use place::set;

/// What is to be signed.
#[derive(Debug, Clone, Copy)]
pub struct SignInput<'a> {
    /// Method of the request.
    pub method: &'a str,
    /// Public URL of the endpoint.
    pub url: &'a str,
    /// Headers that will be sent, the content type among them.
    pub headers: &'a Headers,
    /// The body.
    pub body: &'a [u8],
    /// The signed time.
    pub now: Timestamp,
    /// Id of the message, for schemes that sign one.
    pub id: &'a str,
}

/// A signed request: what to send instead of what was handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// All headers, those handed in first.
    pub headers: Headers,
    /// The body; some schemes put the signature inside.
    pub body: Vec<u8>,
    /// The URL; some schemes put the signature into its query.
    pub url: String,
}

/// Why a request cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignError {
    /// Only the provider has the private key.
    #[error("{0} requests can only be signed with the provider's private key")]
    NeedsPrivateKey(String),
    /// The secret holds no key of this scheme.
    #[error("the secret holds no key this scheme can sign with")]
    NoUsableSecret,
    /// The body is not what this scheme signs.
    #[error("the body must be {0} for this scheme")]
    Body(&'static str),
    /// A part of the signed text is missing.
    #[error("the request lacks {0}, which this scheme signs")]
    MissingField(String),
}

/// Signs a request the way the provider would.
///
/// # Errors
///
/// [`SignError`], above all for schemes with asymmetric keys. Ed25519 schemes can sign when the
/// secret is a 32-byte seed written like their public keys.
pub fn sign(scheme: &Scheme, secret: &Secret, input: &SignInput<'_>) -> Result<Signed, SignError> {
    let parts = secret.parts();
    let mut draft = Signed {
        headers: input.headers.clone(),
        body: input.body.to_vec(),
        url: input.url.to_owned(),
    };
    if let Some(ValueRule::At(Location::Header(names))) = &scheme.event.id
        && draft.headers.first(&names[0]).is_none()
    {
        draft.headers.push(&names[0], input.id);
    }
    for rule in &scheme.require {
        if let (Location::Header(names), Some(value)) = (&rule.at, rule.one_of.first()) {
            draft.headers.push(&names[0], value);
        }
    }
    if let Some(rule) = &scheme.signature {
        return signature(scheme, rule, &parts, input, draft);
    }
    if let Some(rule) = &scheme.jwt {
        return token(scheme, rule, &parts, input, draft);
    }
    let Ok(Key::Shared(key)) = secret::key(&scheme.secret, &parts, None) else {
        return Err(SignError::NoUsableSecret);
    };
    let text = std::str::from_utf8(&key).map_err(|_| SignError::NoUsableSecret)?;
    if let Some(rule) = &scheme.token {
        let at = rule.from.first().ok_or(SignError::NoUsableSecret)?;
        let value = match at {
            Location::Header(_) => format!("{}{text}", rule.prefix),
            _ => text.to_owned(),
        };
        place(&mut draft, at, rule.each.as_ref(), &value)?;
    } else if let Some(rule) = &scheme.basic {
        let value = format!("Basic {}", Encoding::Base64.encode(text.as_bytes()));
        place(&mut draft, &rule.from, None, &value)?;
    }
    Ok(draft)
}

fn signature(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    input: &SignInput<'_>,
    mut draft: Signed,
) -> Result<Signed, SignError> {
    let ts = match &scheme.timestamp {
        Some(stamp) => Some(stamp_request(stamp, input.now, &mut draft)?),
        None => None,
    };
    fill_headers(rule, input.id, &mut draft);
    match rule.step {
        Some(Step::Braintree) => return braintree(scheme, rule, parts, draft),
        Some(Step::AwsSns | Step::Paypal) => {
            return Err(SignError::NeedsPrivateKey(scheme.name.clone()));
        }
        _ => {}
    }
    if rule.each.is_some() {
        return sign_each(scheme, rule, parts, draft);
    }
    fill_body(rule, input.id, &mut draft)?;
    let mut placed = 0;
    for (at, location) in rule.from.iter().enumerate() {
        let member = rule.keys.get(at).map(String::as_str);
        if at > 0 && member.is_none() {
            break;
        }
        let signature = match one(scheme, rule, parts, member, ts.as_deref(), &draft, input) {
            Ok(signature) => signature,
            Err(error) if rule.keys.is_empty() => return Err(error),
            // A secret may hold only one of two keys.
            Err(_) => continue,
        };
        let value = written(scheme, rule, ts.as_deref(), &signature);
        place(&mut draft, location, None, &value)?;
        placed += 1;
    }
    if placed == 0 {
        return Err(SignError::NoUsableSecret);
    }
    Ok(draft)
}

/// The encoded signature over the draft as it stands.
fn one(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    member: Option<&str>,
    ts: Option<&str>,
    draft: &Signed,
    input: &SignInput<'_>,
) -> Result<String, SignError> {
    let request = Request {
        method: input.method,
        url: &draft.url,
        headers: &draft.headers,
        body: &draft.body,
        decoded_body: None,
    };
    let view = View::new(scheme, &request);
    let content = match rule.content.first() {
        Some(template) => plan::render(&view, template, ts, None)
            .map_err(|reason| SignError::MissingField(reason.to_string()))?,
        None => step::twilio::content(&view)
            .map_err(|reason| SignError::MissingField(reason.to_string()))?,
    };
    digest(scheme, rule, parts, member, &content)
}

fn digest(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    member: Option<&str>,
    content: &plan::Content<'_>,
) -> Result<String, SignError> {
    if rule.algorithm == Algorithm::Ed25519 {
        return ed25519(scheme, rule, parts, content);
    }
    if rule.algorithm.public().is_some() {
        return Err(SignError::NeedsPrivateKey(scheme.name.clone()));
    }
    let key = secret::key(&scheme.secret, parts, member).map_err(|_| SignError::NoUsableSecret)?;
    let pieces = resolve(content, parts, &key).ok_or(SignError::NoUsableSecret)?;
    let Key::Shared(key) = &key else {
        return Err(SignError::NoUsableSecret);
    };
    let digest = rule
        .algorithm
        .digest(key, &pieces)
        .ok_or(SignError::NoUsableSecret)?;
    Ok(rule.encoding.encode(&digest))
}

/// The seed is written like the public key: in hex or base64, `whsk_` in front where the scheme
/// has prefixes.
fn ed25519(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    content: &plan::Content<'_>,
) -> Result<String, SignError> {
    let needs = || SignError::NeedsPrivateKey(scheme.name.clone());
    if scheme.secret.encoding != SecretEncoding::PublicKey {
        return Err(needs());
    }
    let text = parts.text().trim();
    let text = text.strip_prefix("whsk_").unwrap_or(text);
    let seed = Encoding::Hex
        .decode(text)
        .or_else(|| Encoding::Base64.decode(text))
        .ok_or_else(needs)?;
    let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| needs())?;
    let mut message = Vec::new();
    for bit in content {
        match &bit.data {
            Data::Bytes(bytes) => message.extend_from_slice(bytes),
            Data::Secret(_) => return Err(needs()),
        }
    }
    Ok(rule.encoding.encode(pair.sign(&message).as_ref()))
}

/// The signature in the scheme's own grammar.
fn written(scheme: &Scheme, rule: &SignatureRule, ts: Option<&str>, signature: &str) -> String {
    let key = rule.key.as_deref().unwrap_or("v1");
    let ts_key = match scheme.timestamp.as_ref().map(|stamp| &stamp.from) {
        Some(Location::Signature(name)) => Some(name.as_str()),
        _ => None,
    };
    let separator = rule.separator.as_deref().unwrap_or(",");
    match (rule.format, ts_key.zip(ts)) {
        (Format::Single | Format::List, _) => format!("{}{signature}", rule.prefix),
        (Format::Versioned, _) => format!("{key},{signature}"),
        (Format::Positional, _) => format!("{}{separator}{signature}", ts.unwrap_or_default()),
        (Format::Pairs | Format::Groups, Some((ts_key, ts))) => {
            let blank = if rule.trim { " " } else { "" };
            format!("{ts_key}={ts}{separator}{blank}{key}={signature}")
        }
        (Format::Pairs | Format::Groups, None) => format!("{key}={signature}"),
    }
}

/// Writes the time where the scheme wants it and gives its text.
fn stamp_request(
    rule: &TimestampRule,
    now: Timestamp,
    draft: &mut Signed,
) -> Result<String, SignError> {
    let text = match rule.unit {
        Unit::UnixS => now.unix_timestamp().to_string(),
        Unit::UnixMs => (now.unix_timestamp_nanos() / 1_000_000).to_string(),
        Unit::Iso8601 => {
            let utc = now.to_offset(time::UtcOffset::UTC);
            let (date, hour, minute, second) = (utc.date(), utc.hour(), utc.minute(), utc.second());
            format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
        }
    };
    match &rule.from {
        Location::Body(path) => {
            // Numbers stay numbers; the one provider that sends text sends both.
            let value = if rule.unit == Unit::Iso8601 {
                json!(text)
            } else {
                serde_json::from_str(&text).map_err(|_| SignError::Body("JSON"))?
            };
            set_in_body(draft, path, value)?;
        }
        Location::Signature(_) | Location::Claim(_) => {}
        at => place(draft, at, None, &text)?,
    }
    Ok(text)
}

/// Adds headers that are signed by name and not there yet.
fn fill_headers(rule: &SignatureRule, id: &str, draft: &mut Signed) {
    let pieces = rule.content.iter().flat_map(|template| template.pieces());
    for piece in pieces {
        match piece {
            Piece::Value {
                at: Location::Header(names),
                ..
            } if draft.headers.first(&names[0]).is_none() => draft.headers.push(&names[0], id),
            Piece::CanonicalRequest => {
                let list = "x-contentful-signed-headers,x-contentful-timestamp";
                draft.headers.push("x-contentful-signed-headers", list);
            }
            _ => {}
        }
    }
}

/// Adds members of the body that are signed by name and not there yet.
fn fill_body(rule: &SignatureRule, id: &str, draft: &mut Signed) -> Result<(), SignError> {
    for piece in rule.content.iter().flat_map(|template| template.pieces()) {
        let Piece::Value {
            at: Location::Body(path),
            optional: false,
        } = piece
        else {
            continue;
        };
        let there = std::str::from_utf8(&draft.body)
            .is_ok_and(|text| crate::json::pick_one(text, path).is_some());
        if !there {
            set_in_body(draft, path, json!(id))?;
        }
    }
    Ok(())
}

fn sign_each(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    mut draft: Signed,
) -> Result<Signed, SignError> {
    let (Some(each), Some(Location::Body(path)), Some(template)) =
        (&rule.each, rule.from.first(), rule.content.first())
    else {
        return Err(SignError::Body("JSON"));
    };
    let mut json = body_json(&draft)?;
    let request = Request {
        method: "POST",
        url: &draft.url,
        headers: &draft.headers,
        body: &[],
        decoded_body: None,
    };
    let view = View::new(scheme, &request);
    for element in elements(&mut json, each.steps()) {
        let text = element.to_string();
        let content = plan::render(&view, template, None, Some(&text))
            .map_err(|reason| SignError::MissingField(reason.to_string()))?;
        let signature = digest(scheme, rule, parts, None, &content)?;
        set(element, path.steps(), json!(signature));
    }
    draft.body = json.to_string().into_bytes();
    Ok(draft)
}

/// Wraps the body, or takes its `bt_payload`, and signs it for our public key.
fn braintree(
    scheme: &Scheme,
    rule: &SignatureRule,
    parts: &Parts<'_>,
    mut draft: Signed,
) -> Result<Signed, SignError> {
    let payload = form::value(&draft.body, "bt_payload")
        .unwrap_or_else(|| format!("{}\n", Encoding::Base64.encode(&draft.body)));
    let content = vec![plan::Bit::new("payload", payload.clone().into_bytes())];
    let signature = digest(scheme, rule, parts, None, &content)?;
    let owner = parts
        .member("public_key")
        .ok_or(SignError::NoUsableSecret)?;
    draft.body = format!(
        "bt_signature={}&bt_payload={}",
        escaped(&format!("{owner}|{signature}")),
        escaped(&payload)
    )
    .into_bytes();
    Ok(draft)
}
