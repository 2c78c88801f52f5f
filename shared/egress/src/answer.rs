//! What came back.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use hookstead_domain::{HttpAnswer, OUTCOME_HEADER, Outcome, RETRY_AFTER, Timestamp};
use http::HeaderMap;
use serde::Serialize;

/// Headers of an answer that carry the id under which the other side knows the request;
/// the first that is there counts.
pub const REQUEST_ID_HEADERS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "x-correlation-id",
    "x-amz-cf-id",
    "cf-ray",
];

/// The other headers that are kept: what decides, and what tells people which server
/// answered. No cookies, no addresses, nothing that could be anybody's data.
const KEPT: [&str; 4] = ["content-type", OUTCOME_HEADER, RETRY_AFTER, "server"];

/// Most characters that are kept of one value, as the database has it.
const MAX_VALUE_CHARS: usize = 256;

/// Most values that are kept of one header. More than two are an accident or an attack.
const MAX_VALUES: usize = 4;

/// Most of a body that is kept, in bytes: for people who try out a destination.
pub const MAX_PREFIX_BYTES: usize = 4096;

/// The headers of an answer that are kept, by name in lower case.
///
/// Written as a JSON object of lists of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct KeptHeaders(BTreeMap<&'static str, Vec<String>>);

/// An answer, whatever its status.
///
/// Debug output has no byte of the body.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status as it stood on the wire: 100 to 999.
    pub status: u16,
    /// The headers that are kept.
    pub headers: KeptHeaders,
    /// The id under which the other side knows the request, at most 256 characters.
    pub partner_request_id: Option<String>,
    /// The SHA-256 of what was read of the body.
    pub body_sha256: [u8; 32],
    /// How many bytes of the body were read.
    pub body_bytes: usize,
    /// Whether the body went on after that. It changes nothing about the answer.
    pub body_cut: bool,
    /// The beginning of the body, at most [`MAX_PREFIX_BYTES`].
    pub body_prefix: Bytes,
    /// How long everything took, in milliseconds.
    pub latency_ms: u32,
}

impl KeptHeaders {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let names = KEPT.iter().chain(&REQUEST_ID_HEADERS);
        let kept = names.filter_map(|name| {
            let values = headers.get_all(*name).iter().take(MAX_VALUES);
            let values: Vec<_> = values.map(|value| text(value.as_bytes())).collect();
            (!values.is_empty()).then_some((*name, values))
        });
        Self(kept.collect())
    }

    /// The values of a header; the name is in lower case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.get(name).into_iter().flatten();
        values.map(String::as_str)
    }

    /// The id under which the other side knows the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        let ids = REQUEST_ID_HEADERS.iter().flat_map(|name| self.all(name));
        ids.map(str::trim).find(|id| !id.is_empty())
    }
}

fn text(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars().take(MAX_VALUE_CHARS).collect()
}

impl Answer {
    /// What came of the attempt; `now` is when the answer came.
    #[must_use]
    pub fn outcome(&self, now: Timestamp) -> Outcome {
        self.read(|answer| answer.outcome(now))
    }

    /// The status as an attempt's row can hold it.
    #[must_use]
    pub fn recorded_status(&self) -> Option<u16> {
        self.read(|answer| answer.recorded_status())
    }

    /// Whether the answer ends its subscription, not only this delivery.
    #[must_use]
    pub fn disables_subscription(&self) -> bool {
        self.read(|answer| answer.disables_subscription())
    }

    fn read<T>(&self, read: impl FnOnce(&HttpAnswer<'_>) -> T) -> T {
        let outcome: Vec<_> = self.headers.all(OUTCOME_HEADER).collect();
        let retry_after: Vec<_> = self.headers.all(RETRY_AFTER).collect();
        read(&HttpAnswer {
            status: self.status,
            outcome: &outcome,
            retry_after: &retry_after,
        })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_bytes", &self.body_bytes)
            .field("body_cut", &self.body_cut)
            .field("latency_ms", &self.latency_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(lines: &[(&'static str, &[u8])]) -> KeptHeaders {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        KeptHeaders::of(&map)
    }

    #[test]
    fn only_known_headers_are_kept_and_no_more_than_a_little_of_each() {
        let long = [b'x'; 5000];
        let kept = headers(&[
            ("set-cookie", b"CANARY"),
            ("location", b"https://CANARY.example"),
            ("server", &long),
            ("retry-after", b"1"),
            ("retry-after", b"2"),
            ("retry-after", b"3"),
            ("retry-after", b"4"),
            ("retry-after", b"5"),
            ("content-type", b"text/\xff"),
        ]);
        let json = serde_json::to_string(&kept).unwrap();
        assert!(!json.contains("CANARY"), "{json}");
        assert_eq!(kept.all("server").next().unwrap().len(), MAX_VALUE_CHARS);
        assert_eq!(
            kept.all("retry-after").collect::<Vec<_>>(),
            ["1", "2", "3", "4"]
        );
        assert!(json.starts_with(r#"{"content-type":["text/"#), "{json}");
    }

    #[test]
    fn the_first_known_request_id_counts() {
        let kept = headers(&[("cf-ray", b"ray"), ("request-id", b" req_1 ")]);
        assert_eq!(kept.request_id(), Some("req_1"));
        assert_eq!(headers(&[("x-request-id", b"")]).request_id(), None);
    }
}
