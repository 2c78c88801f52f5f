//! What a consumer receives: CloudEvents 1.0 over HTTP, signed by Standard Webhooks.

mod custom_headers;
mod signature;
mod structured;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use hookstead_domain::{DeliveryId, Envelope, ErrorClass, Timestamp};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::{Deserialize, Serialize};

use crate::request::OutgoingRequest;

pub use custom_headers::{
    CustomHeaderError, CustomHeaders, MAX_CUSTOM_HEADERS, MAX_NAME_BYTES, MAX_VALUE_BYTES,
};
pub use signature::{SigningFailed, SigningSecrets, StandardSignature};

/// The header with the number of the attempt, from 1.
pub const ATTEMPT_HEADER: &str = "hookstead-attempt";

/// What we call ourselves.
const USER_AGENT: &str = concat!("Hookstead/", env!("CARGO_PKG_VERSION"));

/// The content type of structured mode.
const STRUCTURED_TYPE: &str = "application/cloudevents+json";

/// How the envelope travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In `ce-*` headers; the body is the event's own bytes.
    #[default]
    Binary,
    /// Around the event, in one JSON document.
    Structured,
}

/// A text that names no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"binary\" or \"structured\"")]
pub struct UnknownMode;

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "binary" => Ok(Self::Binary),
            "structured" => Ok(Self::Structured),
            _ => Err(UnknownMode),
        }
    }
}

/// What one attempt is built from.
#[derive(Clone, Copy)]
pub struct WebhookInput<'a> {
    /// What is said about the event.
    pub envelope: &'a Envelope<'a>,
    /// The delivery: the id by which the consumer recognises repetitions.
    pub delivery_id: DeliveryId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// How the envelope travels.
    pub mode: Mode,
    /// The event's content type, as it was received.
    pub content_type: Option<&'a str>,
    /// The event's bytes, as they were received.
    pub body: &'a Bytes,
    /// The subscription's own headers.
    pub custom_headers: &'a CustomHeaders,
    /// What it is signed with.
    pub secrets: SigningSecrets<'a>,
    /// The signed time: now.
    pub now: Timestamp,
    /// The trace that the attempt belongs to, in the form of W3C Trace Context.
    pub traceparent: Option<&'a str>,
}

/// A webhook, ready to be sent anywhere.
///
/// Debug output has lengths alone.
#[derive(Clone)]
pub struct WebhookRequest {
    /// The headers, each of them once.
    pub headers: HeaderMap,
    /// The body. The signature is over exactly these bytes.
    pub body: Bytes,
}

/// Why a webhook cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The secret cannot sign.
    #[error("the webhook cannot be signed")]
    Signing(#[from] SigningFailed),
    /// The envelope cannot be written.
    #[error("the envelope cannot be written")]
    Envelope(#[source] serde_json::Error),
}

impl WebhookError {
    /// The class of an attempt that ends here.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Signing(_) => ErrorClass::SecretUnavailable,
            Self::Envelope(_) => ErrorClass::Internal,
        }
    }
}

impl WebhookRequest {
    /// Builds the webhook of one attempt. The same input gives the same bytes, and every
    /// attempt of a delivery the same id and body.
    ///
    /// # Errors
    ///
    /// [`WebhookError`], above all where a secret is no Standard Webhooks secret.
    pub fn build(input: WebhookInput<'_>) -> Result<Self, WebhookError> {
        let mut headers = input.custom_headers.to_map();
        let body = match input.mode {
            Mode::Binary => {
                binary(&input, &mut headers);
                input.body.clone()
            }
            Mode::Structured => {
                let content_type = HeaderValue::from_static(STRUCTURED_TYPE);
                headers.insert(header::CONTENT_TYPE, content_type);
                let written = structured::write(input.envelope, input.content_type, input.body);
                written.map_err(WebhookError::Envelope)?
            }
        };
        let id = input.delivery_id.to_string();
        let signature = StandardSignature::sign(&id, input.now, &body, input.secrets)?;
        signature.put_into(&mut headers);
        put(&mut headers, ATTEMPT_HEADER, &input.attempt.to_string());
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some(traceparent) = input.traceparent {
            put(&mut headers, "traceparent", traceparent);
        }
        Ok(Self { headers, body })
    }

    /// The request that brings it to `url`.
    #[must_use]
    pub fn to(self, url: String, deadline: Duration, allow_http: bool) -> OutgoingRequest {
        OutgoingRequest {
            method: Method::POST,
            url,
            headers: self.headers,
            body: self.body,
            deadline,
            allow_http,
        }
    }
}

fn binary(input: &WebhookInput<'_>, headers: &mut HeaderMap) {
    for attribute in input.envelope.attributes() {
        put(headers, &attribute.header_name(), &attribute.header_value());
    }
    if let Some(content_type) = input.content_type {
        put(headers, header::CONTENT_TYPE.as_str(), content_type);
    }
}

/// Sets a header of ours. A value that HTTP cannot carry is left out: it came with the
/// event, and a delivery must not fail for it.
fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    let value = HeaderValue::from_bytes(value.as_bytes());
    if let (Ok(name), Ok(value)) = (name, value) {
        headers.insert(name, value);
    }
}

impl fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookRequest")
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.len())
            .finish()
    }
}
