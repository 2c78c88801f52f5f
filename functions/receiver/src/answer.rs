//! What the receiver answers.

use hookstead_domain::{ErrorCode, EventId};
use hookstead_signing::HandshakeAnswer;
use serde_json::json;

/// How long a sender is asked to wait before it tries again, in seconds. Long
/// enough for a database to fail over or wake up, short enough for the shortest
/// retry schedules of providers.
const RETRY_AFTER_S: &str = "15";

const ALLOWED_METHODS: &str = "POST, GET, HEAD, OPTIONS";

/// An HTTP answer, still independent of who carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Header names and values; names are lower case.
    pub headers: Vec<(String, String)>,
    /// The body, empty for none.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }

    /// The event is committed.
    #[must_use]
    pub fn stored(event_id: EventId) -> Self {
        Self::json(200, &json!({ "event_id": event_id }))
    }

    /// An event with this key was committed before; `event_id` is that one's.
    #[must_use]
    pub fn duplicate(event_id: Option<EventId>) -> Self {
        Self::json(200, &json!({ "event_id": event_id, "duplicate": true }))
    }

    /// The same answer with the text that the provider wants to read instead of ours.
    #[must_use]
    pub fn worded(mut self, acknowledge: Option<&str>) -> Self {
        if let Some(text) = acknowledge {
            self.headers.clear();
            if !text.is_empty() {
                self.set_header("content-type", "text/plain; charset=utf-8");
            }
            self.body = text.as_bytes().to_vec();
        }
        self
    }

    /// A sign of life: 200 without a body. OPTIONS also learns the methods.
    #[must_use]
    pub fn probe(method: &str) -> Self {
        let mut answer = Self::empty(200);
        if method == "OPTIONS" {
            answer.set_header("allow", ALLOWED_METHODS);
        }
        answer
    }

    /// The request is refused. The body carries the code and nothing else.
    #[must_use]
    pub fn refused(code: ErrorCode) -> Self {
        let mut answer = Self::json(code.status(), &json!({ "error": code.as_str() }));
        if code.is_retryable() {
            answer.set_header("retry-after", RETRY_AFTER_S);
        }
        if code == ErrorCode::MethodNotAllowed {
            answer.set_header("allow", ALLOWED_METHODS);
        }
        answer
    }

    fn set_header(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// The value of a header, for tests and adapters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl From<HandshakeAnswer> for Answer {
    fn from(answer: HandshakeAnswer) -> Self {
        Self {
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
        }
    }
}
