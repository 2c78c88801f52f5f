//! What is answered to each kind of handshake.

use serde_json::json;

use super::{FollowUp, Handshake, HandshakeAnswer};
use crate::Timestamp;
use crate::algorithm::{Algorithm, same};
use crate::encoding::Encoding;
use crate::form;
use crate::json::{self, JsonPath};
use crate::location::Location;
use crate::request::Candidate;
use crate::scheme::RequireRule;
use crate::secret::{self, Key, Secret};
use crate::verify::verify;
use crate::view::View;

/// Longest challenge that is echoed. The longest documented one has under 500 characters.
pub(super) const MAX_CHALLENGE_BYTES: usize = 4_096;

pub(super) fn post(view: &View<'_>) -> bool {
    view.request.method == "POST"
}

pub(super) fn all_hold(view: &View<'_>, rules: &[RequireRule]) -> bool {
    rules
        .iter()
        .all(|rule| view.text(&rule.at).is_some_and(|value| rule.allows(&value)))
}

pub(super) fn shape(
    view: &View<'_>,
    absent: &Option<JsonPath>,
    empty_list: &Option<JsonPath>,
) -> bool {
    let raw = |path: &JsonPath| view.json().and_then(|text| json::pick_one(text, path));
    let is_absent = absent.as_ref().is_none_or(|path| raw(path).is_none());
    let is_empty = empty_list.as_ref().is_none_or(|path| {
        raw(path).is_some_and(|raw| {
            serde_json::from_str::<Vec<serde::de::IgnoredAny>>(raw.get())
                .is_ok_and(|list| list.is_empty())
        })
    });
    is_absent && is_empty
}

pub(super) fn query(view: &View<'_>, name: &str) -> Option<String> {
    form::value(view.request.query().as_bytes(), name)
}

pub(super) fn query_echo(
    view: &View<'_>,
    candidates: &[Candidate<'_>],
    method: &str,
    challenge: &str,
    verify_token: Option<&str>,
) -> Handshake {
    let value = query(view, challenge);
    let token = verify_token.map(|name| query(view, name));
    let asked = value.is_some() || token.as_ref().is_some_and(Option::is_some);
    if view.request.method != method || !asked {
        return Handshake::No;
    }
    if let Some(token) = token {
        let token = token.unwrap_or_default();
        let right = candidates.iter().any(|candidate| {
            candidate
                .secret
                .parts()
                .member("verify_token")
                .is_some_and(|wanted| same(wanted.as_bytes(), token.as_bytes()))
        });
        if !right {
            return Handshake::Answer(HandshakeAnswer::empty(403));
        }
    }
    Handshake::Answer(match value {
        Some(value) if (1..=MAX_CHALLENGE_BYTES).contains(&value.len()) => {
            HandshakeAnswer::text(200, value)
        }
        _ => HandshakeAnswer::empty(400),
    })
}

/// The key of the first usable candidate, which is the current one.
pub(super) fn current_key(
    view: &View<'_>,
    candidates: &[Candidate<'_>],
) -> Option<zeroize::Zeroizing<Vec<u8>>> {
    candidates.iter().find_map(|candidate| {
        match secret::key(&view.scheme.secret, &candidate.secret.parts(), None) {
            Ok(Key::Shared(key)) => Some(key),
            _ => None,
        }
    })
}

pub(super) fn query_hmac(
    view: &View<'_>,
    candidates: &[Candidate<'_>],
    challenge: &str,
    member: &str,
    prefix: &str,
) -> Handshake {
    let Some(value) = query(view, challenge).filter(|_| view.request.method == "GET") else {
        return Handshake::No;
    };
    if value.is_empty() || value.len() > MAX_CHALLENGE_BYTES {
        return Handshake::Answer(HandshakeAnswer::empty(400));
    }
    let digest = current_key(view, candidates)
        .and_then(|key| Algorithm::HmacSha256.digest(&key, &[value.as_bytes()]));
    Handshake::Answer(match digest {
        Some(digest) => {
            let token = format!("{prefix}{}", Encoding::Base64.encode(&digest));
            HandshakeAnswer::json(&json!({ member: token }))
        }
        None => HandshakeAnswer::empty(503),
    })
}

pub(super) fn braintree(view: &View<'_>, candidates: &[Candidate<'_>]) -> Handshake {
    let Some(value) = query(view, "bt_challenge").filter(|_| view.request.method == "GET") else {
        return Handshake::No;
    };
    let hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hex || !(20..=32).contains(&value.len()) {
        return Handshake::Answer(HandshakeAnswer::empty(400));
    }
    let answer = candidates.iter().find_map(|candidate| {
        let parts = candidate.secret.parts();
        let public_key = parts.member("public_key")?.to_owned();
        let Ok(Key::Shared(key)) = secret::key(&view.scheme.secret, &parts, None) else {
            return None;
        };
        let digest = Algorithm::HmacSha1.digest(&key, &[value.as_bytes()])?;
        Some(format!("{public_key}|{}", Encoding::Hex.encode(&digest)))
    });
    Handshake::Answer(match answer {
        Some(text) => HandshakeAnswer::text(200, text),
        None => HandshakeAnswer::empty(503),
    })
}

pub(super) fn secret_header(view: &View<'_>, header: &str) -> Handshake {
    let Some(value) = view.request.headers.first(header).filter(|_| post(view)) else {
        return Handshake::No;
    };
    match Secret::new(value) {
        Ok(secret) if value.len() <= MAX_CHALLENGE_BYTES => {
            let mut answer = HandshakeAnswer::empty(200);
            answer.headers.push((header.to_owned(), value.to_owned()));
            answer.follow_up = Some(FollowUp::StoreSecret(secret));
            Handshake::Answer(answer)
        }
        _ => Handshake::Answer(HandshakeAnswer::empty(400)),
    }
}

pub(super) fn body_echo(view: &View<'_>, when: &[RequireRule], challenge: &Location) -> Handshake {
    if !post(view) || !all_hold(view, when) {
        return Handshake::No;
    }
    match view.text(challenge) {
        Some(value) if (1..=MAX_CHALLENGE_BYTES).contains(&value.len()) => {
            Handshake::AnswerIfVerified(HandshakeAnswer::text(200, value))
        }
        _ => Handshake::AnswerIfVerified(HandshakeAnswer::empty(400)),
    }
}

pub(super) fn zoom(view: &View<'_>, candidates: &[Candidate<'_>]) -> Handshake {
    let at = |path: &str| view.text(&path.parse().ok()?);
    if !post(view) || at("body:$.event").as_deref() != Some("endpoint.url_validation") {
        return Handshake::No;
    }
    let token = at("body:$.payload.plainToken").filter(|token| token.len() <= MAX_CHALLENGE_BYTES);
    let Some(token) = token else {
        return Handshake::AnswerIfVerified(HandshakeAnswer::empty(400));
    };
    let digest = current_key(view, candidates)
        .and_then(|key| Algorithm::HmacSha256.digest(&key, &[token.as_bytes()]));
    let encrypted = digest.map(|digest| Encoding::Hex.encode(&digest));
    let answer = json!({ "plainToken": token, "encryptedToken": encrypted });
    Handshake::AnswerIfVerified(HandshakeAnswer::json(&answer))
}

pub(super) fn form_ping(view: &View<'_>, field: &str) -> Handshake {
    let fields = form::fields(view.request.plain_body());
    let only = matches!(&fields[..], [(name, value)] if **name == *field.as_bytes() && value.iter().all(u8::is_ascii_digit));
    if post(view) && only && !is_signed(view) {
        return Handshake::Answer(HandshakeAnswer::empty(200));
    }
    Handshake::No
}

pub(super) fn is_signed(view: &View<'_>) -> bool {
    let places = view.scheme.signature.iter().flat_map(|rule| &rule.from);
    let mut signatures = places.flat_map(|at| view.texts(at));
    signatures.any(|text| !text.is_empty())
}

pub(super) fn fixed_key(view: &View<'_>, key: &str, now: Timestamp) -> Handshake {
    let Ok(secret) = Secret::new(key) else {
        return Handshake::No;
    };
    let candidate = Candidate {
        label: "fixed",
        secret: &secret,
    };
    let test = post(view)
        && form::value(view.request.plain_body(), "mandrill_events").as_deref() == Some("[]")
        && verify(view.scheme, view.request, &[candidate], now, None).is_ok();
    if test {
        return Handshake::Answer(HandshakeAnswer::empty(200));
    }
    Handshake::No
}

pub(super) fn secret_in_body(view: &View<'_>, at: &Location) -> Handshake {
    if !post(view) || is_signed(view) {
        return Handshake::No;
    }
    match view.text(at).map(Secret::new) {
        Some(Ok(secret)) => {
            let mut answer = HandshakeAnswer::empty(200);
            answer.follow_up = Some(FollowUp::StoreSecret(secret));
            Handshake::Answer(answer)
        }
        _ => Handshake::No,
    }
}

pub(super) fn sns_confirmation(view: &View<'_>) -> Handshake {
    let at = |path: &str| view.text(&path.parse().ok()?);
    if !post(view) || at("body:$.Type").as_deref() != Some("SubscriptionConfirmation") {
        return Handshake::No;
    }
    let url = at("body:$.SubscribeURL").filter(|url| {
        let host = url
            .strip_prefix("https://")
            .and_then(|rest| rest.split(['/', '?']).next());
        host.is_some_and(|host| crate::step::certificate::is_sns(host, "/x.pem"))
    });
    let mut answer = HandshakeAnswer::empty(if url.is_some() { 200 } else { 400 });
    answer.follow_up = url.map(|url| FollowUp::ConfirmSubscription { url });
    Handshake::AnswerIfVerified(answer)
}

pub(super) fn cloud_events(view: &View<'_>) -> Handshake {
    let headers = view.request.headers;
    let Some(origin) = headers.first("WebHook-Request-Origin") else {
        return Handshake::No;
    };
    let printable = origin.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    if view.request.method != "OPTIONS" || !printable || origin.len() > MAX_CHALLENGE_BYTES {
        return Handshake::No;
    }
    let mut answer = HandshakeAnswer::empty(200);
    answer.headers.push(("allow".into(), "POST".into()));
    answer
        .headers
        .push(("webhook-allowed-origin".into(), origin.to_owned()));
    if headers.first("WebHook-Request-Rate").is_some() {
        answer
            .headers
            .push(("webhook-allowed-rate".into(), "*".into()));
    }
    Handshake::Answer(answer)
}
