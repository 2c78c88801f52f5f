//! Requests a provider sends to find out whether the receiver is really there.

mod answers;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Timestamp;
use crate::json::JsonPath;
use crate::location::Location;
use crate::request::{Candidate, Request};
use crate::scheme::{RequireRule, Scheme};
use crate::secret::Secret;
use crate::view::View;
use answers::{
    MAX_CHALLENGE_BYTES, all_hold, body_echo, braintree, cloud_events, fixed_key, form_ping, post,
    query_echo, query_hmac, secret_header, secret_in_body, shape, sns_confirmation, zoom,
};

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
