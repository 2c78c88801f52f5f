//! API Gateway HTTP API events (payload format 2.0), and function URLs, which
//! use the same shape.
//!
//! The receiver reads its own event type instead of lambda_http's because a
//! sender must get the answer that its request deserves, whatever is in it:
//! lambda_http panics on a body that is not base64 and refuses a whole event over
//! a control character in a header, and the sender sees a 500 for either.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead_domain::ErrorCode;
use hookstead_secrets::SecretProvider;
use hookstead_signing::Headers;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::receiver::Receiver;
use crate::request::InboundRequest;

/// Answers one event through the receiver.
pub async fn answer<P: SecretProvider>(
    receiver: &Receiver<P>,
    event: HttpApiEvent,
) -> HttpApiAnswer {
    let answer = match event.into_request() {
        Ok(request) => guarded(receiver.handle(request)).await,
        Err(code) => Answer::refused(code),
    };
    answer.into()
}

/// A panic becomes the 500 that is documented. The runtime would answer with the
/// panic's text, which may quote what was being handled.
async fn guarded(answering: impl Future<Output = Answer>) -> Answer {
    let mut answering = pin!(answering);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Answer::refused(ErrorCode::Internal)))
    })
    .await
}

/// The event of one HTTP request. Fields that the receiver does not use are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpApiEvent {
    #[serde(default)]
    raw_path: String,
    #[serde(default)]
    raw_query_string: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Option<String>>,
    request_context: RequestContext,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    http: HttpDescription,
    #[serde(default)]
    domain_name: Option<String>,
}

#[derive(Deserialize)]
struct HttpDescription {
    method: String,
}

impl HttpApiEvent {
    /// Turns the event into a request with the exact body bytes.
    ///
    /// Only the flag says whether the body is base64: which content types the
    /// gateway encodes is not documented.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::MalformedRequest`] where the flag is set and the body is not base64.
    pub fn into_request(self) -> Result<InboundRequest, ErrorCode> {
        let text = self.body.unwrap_or_default();
        let body = if self.is_base64_encoded.unwrap_or(false) {
            STANDARD
                .decode(text)
                .map_err(|_| ErrorCode::MalformedRequest)?
        } else {
            text.into_bytes()
        };
        let headers = Headers::from_pairs(
            self.headers
                .into_iter()
                .map(|(name, value)| (name, value.unwrap_or_default())),
        );
        let host = self
            .request_context
            .domain_name
            .or_else(|| headers.first("host").map(str::to_owned))
            .unwrap_or_default();
        Ok(InboundRequest {
            method: self.request_context.http.method.to_ascii_uppercase(),
            path: self.raw_path,
            raw_query: self.raw_query_string.unwrap_or_default(),
            origin: format!("https://{host}"),
            headers,
            body,
        })
    }
}

/// The answer in the shape that the gateway expects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpApiAnswer {
    status_code: u16,
    headers: BTreeMap<String, String>,
    body: String,
    is_base64_encoded: bool,
}

impl From<Answer> for HttpApiAnswer {
    fn from(answer: Answer) -> Self {
        let (body, is_base64_encoded) = match String::from_utf8(answer.body) {
            Ok(text) => (text, false),
            Err(bytes) => (STANDARD.encode(bytes.as_bytes()), true),
        };
        Self {
            status_code: answer.status,
            headers: answer.headers.into_iter().collect(),
            body,
            is_base64_encoded,
        }
    }
}
