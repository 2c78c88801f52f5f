//! Requests a provider sends to find out whether the receiver is really there.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Timestamp;
use crate::algorithm::{Algorithm, same};
use crate::encoding::Encoding;
use crate::form;
use crate::json::{self, JsonPath};
use crate::location::Location;
use crate::request::{Candidate, Request};
use crate::scheme::{RequireRule, Scheme};
use crate::secret::{self, Key, Secret};
use crate::verify::verify;
use crate::view::View;

/// Longest challenge that is echoed. The longest documented one has under 500 characters.
const MAX_CHALLENGE_BYTES: usize = 4_096;

/// A request that must be answered in a special way, and is no event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HandshakeRule {
    /// Echo a query parameter as plain text. With `verify_token`, only when that parameter holds
    /// the member `verify_token` of the JSON secret.
    QueryEcho {
        /// Method of the request.
        method: String,
        /// The parameter that is echoed.
        challenge: String,
        /// The parameter that must hold the verify token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verify_token: Option<String>,
    },
    /// Answer a query parameter with its HMAC as JSON.
    QueryHmac {
        /// The parameter.
        challenge: String,
        /// The member of the answer.
        member: String,
        /// The text before the base64 digest.
        prefix: String,
    },
    /// Answer Braintree's challenge.
    Braintree,
    /// Echo a header as a header; its value is the secret of everything that follows.
    SecretHeader {
        /// The header.
        header: String,
    },
    /// Echo a header as a member of a JSON object.
    HeaderToJson {
        /// Method of the request.
        method: String,
        /// The header.
        header: String,
        /// The member of the answer.
        member: String,
    },
    /// Echo a value of the body as plain text.
    BodyEcho {
        /// What tells such a request.
        when: Vec<RequireRule>,
        /// The value that is echoed.
        challenge: Location,
    },
    /// Answer Zoom's URL validation.
    Zoom,
    /// A fixed answer.
    Reply {
        /// What tells such a request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        when: Vec<RequireRule>,
        /// A path that must not be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<JsonPath>,
        /// A path that must hold an empty list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        empty_list: Option<JsonPath>,
        /// Status of the answer.
        status: u16,
        /// JSON body of the answer.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        body: String,
    },
    /// An unsigned form with this one field.
    FormPing {
        /// The field.
        field: String,
    },
    /// A request signed with a fixed, public key.
    FixedKey {
        /// The key.
        key: String,
    },
    /// An unsigned body that hands over the secret of everything that follows.
    SecretInBody {
        /// Where the secret is.
        at: Location,
    },
    /// Amazon SNS asks to confirm a subscription.
    SnsConfirmation,
    /// The OPTIONS request of CloudEvents.
    CloudEventsOptions,
}

/// What a request is, seen as a handshake.
#[derive(Debug, Clone)]
pub enum Handshake {
    /// No handshake: verify and store it.
    No,
    /// Answer at once; the request carries no signature.
    Answer(HandshakeAnswer),
    /// Verify first. When it verifies, answer this and store nothing; else refuse as usual.
    AnswerIfVerified(HandshakeAnswer),
}

/// An answer to a handshake.
///
/// Debug output leaves values out: some answers hold the secret that was handed over.
#[derive(Clone)]
pub struct HandshakeAnswer {
    /// HTTP status.
    pub status: u16,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// What is left to do beside answering.
    pub follow_up: Option<FollowUp>,
}

/// What is left to do after a handshake was answered.
#[derive(Clone)]
#[non_exhaustive]
pub enum FollowUp {
    /// The provider chose the secret. Anybody may send this before a secret is set, so store it
    /// only while the source has none, or after a person agreed.
    StoreSecret(Secret),
    /// Fetch this URL to confirm the subscription. Its host was checked.
    ConfirmSubscription {
        /// The URL.
        url: String,
    },
}

impl fmt::Debug for FollowUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoreSecret(_) => "StoreSecret(redacted)",
            // The URL holds a token that confirms.
            Self::ConfirmSubscription { .. } => "ConfirmSubscription(redacted)",
        })
    }
}

impl fmt::Debug for HandshakeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeAnswer")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("follow_up", &self.follow_up)
            .finish_non_exhaustive()
    }
}

impl HandshakeAnswer {
    fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut headers = Vec::new();
        if !content_type.is_empty() {
            headers.push(("content-type".to_owned(), content_type.to_owned()));
            // A challenge is a stranger's text: no browser may take it for a page.
            headers.push(("x-content-type-options".to_owned(), "nosniff".to_owned()));
        }
        Self {
            status,
            headers,
            body: body.into(),
            follow_up: None,
        }
    }

    fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    fn json(body: &serde_json::Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    fn empty(status: u16) -> Self {
        Self::new(status, "", Vec::new())
    }
}

/// Tells whether `request` is a handshake of `scheme`, and how it is answered.
#[must_use]
pub fn handshake(
    scheme: &Scheme,
    request: &Request<'_>,
    candidates: &[Candidate<'_>],
    now: Timestamp,
) -> Handshake {
    let view = View::new(scheme, request);
    for rule in &scheme.handshake {
        let answer = one(rule, &view, candidates, now);
        if !matches!(answer, Handshake::No) {
            return answer;
        }
    }
    Handshake::No
}

fn one(
    rule: &HandshakeRule,
    view: &View<'_>,
    candidates: &[Candidate<'_>],
    now: Timestamp,
) -> Handshake {
    match rule {
        HandshakeRule::QueryEcho {
            method,
            challenge,
            verify_token,
        } => query_echo(view, candidates, method, challenge, verify_token.as_deref()),
        HandshakeRule::QueryHmac {
            challenge,
            member,
            prefix,
        } => query_hmac(view, candidates, challenge, member, prefix),
        HandshakeRule::Braintree => braintree(view, candidates),
        HandshakeRule::SecretHeader { header } => secret_header(view, header),
        HandshakeRule::HeaderToJson {
            method,
            header,
            member,
        } => {
            let value = view.request.headers.first(header);
            match value.filter(|_| view.request.method == method) {
                Some(value) if value.len() <= MAX_CHALLENGE_BYTES => {
                    let answer = HandshakeAnswer::json(&json!({ member: value }));
                    Handshake::AnswerIfVerified(answer)
                }
                _ => Handshake::No,
            }
        }
        HandshakeRule::BodyEcho { when, challenge } => body_echo(view, when, challenge),
        HandshakeRule::Zoom => zoom(view, candidates),
        HandshakeRule::Reply {
            when,
            absent,
            empty_list,
            status,
            body,
        } => {
            if !post(view) || !all_hold(view, when) || !shape(view, absent, empty_list) {
                return Handshake::No;
            }
            let content_type = if *status == 204 || !body.is_empty() {
                "application/json"
            } else {
                ""
            };
            let answer = HandshakeAnswer::new(*status, content_type, body.clone());
            Handshake::AnswerIfVerified(answer)
        }
        HandshakeRule::FormPing { field } => form_ping(view, field),
        HandshakeRule::FixedKey { key } => fixed_key(view, key, now),
        HandshakeRule::SecretInBody { at } => secret_in_body(view, at),
        HandshakeRule::SnsConfirmation => sns_confirmation(view),
        HandshakeRule::CloudEventsOptions => cloud_events(view),
    }
}

fn post(view: &View<'_>) -> bool {
    view.request.method == "POST"
}

fn all_hold(view: &View<'_>, rules: &[RequireRule]) -> bool {
    rules.iter().all(|rule| {
        view.text(&rule.at)
            .is_some_and(|value| rule.one_of.contains(&value))
    })
}

fn shape(view: &View<'_>, absent: &Option<JsonPath>, empty_list: &Option<JsonPath>) -> bool {
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

fn query(view: &View<'_>, name: &str) -> Option<String> {
    form::value(view.request.query().as_bytes(), name)
}

fn query_echo(
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
fn current_key(
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

fn query_hmac(
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

fn braintree(view: &View<'_>, candidates: &[Candidate<'_>]) -> Handshake {
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

fn secret_header(view: &View<'_>, header: &str) -> Handshake {
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

fn body_echo(view: &View<'_>, when: &[RequireRule], challenge: &Location) -> Handshake {
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

fn zoom(view: &View<'_>, candidates: &[Candidate<'_>]) -> Handshake {
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

fn form_ping(view: &View<'_>, field: &str) -> Handshake {
    let fields = form::fields(view.request.plain_body());
    let only = matches!(&fields[..], [(name, value)] if **name == *field.as_bytes() && value.iter().all(u8::is_ascii_digit));
    if post(view) && only && !is_signed(view) {
        return Handshake::Answer(HandshakeAnswer::empty(200));
    }
    Handshake::No
}

fn is_signed(view: &View<'_>) -> bool {
    let places = view.scheme.signature.iter().flat_map(|rule| &rule.from);
    let mut signatures = places.flat_map(|at| view.texts(at));
    signatures.any(|text| !text.is_empty())
}

fn fixed_key(view: &View<'_>, key: &str, now: Timestamp) -> Handshake {
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

fn secret_in_body(view: &View<'_>, at: &Location) -> Handshake {
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

fn sns_confirmation(view: &View<'_>) -> Handshake {
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

fn cloud_events(view: &View<'_>) -> Handshake {
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
