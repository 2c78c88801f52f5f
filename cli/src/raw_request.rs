//! A request as text, the way it stands on the wire: request line, headers, a
//! blank line, the exact body bytes.

use hookstead_signing::Headers;

use crate::error::Error;
use crate::latin1;

/// One HTTP request with its exact body.
///
/// It has no `Debug`: everything in it may be somebody's secret.
pub(crate) struct RawRequest {
    pub(crate) method: String,
    /// Path and query, or the whole URL where the request line holds it.
    pub(crate) target: String,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// The request line of what is printed and read back.
const VERSION: &str = "HTTP/1.1";

impl RawRequest {
    /// Reads the text of a request. Lines may end in CR LF or in LF alone, as
    /// editors and shells leave them. The body is everything after the first
    /// blank line, with no byte added or taken.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let line = take_line(&mut rest).ok_or_else(|| malformed("it has no request line"))?;
        let line = latin1::decode(line);
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(malformed(
                "the first line is not of the form: POST /path HTTP/1.1",
            ));
        };
        if !version.starts_with("HTTP/") {
            return Err(malformed("the first line does not end with HTTP/1.1"));
        }
        let mut headers = Headers::new();
        loop {
            let line = take_line(&mut rest)
                .ok_or_else(|| malformed("no blank line stands between headers and body"))?;
            if line.is_empty() {
                break;
            }
            let line = latin1::decode(line);
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| malformed("a header line has no colon"))?;
            headers.push(name.trim(), value.trim_matches([' ', '\t']));
        }
        Ok(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            body: rest.to_vec(),
        })
    }

    /// The text that [`RawRequest::parse`] reads back to the same request.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = latin1::encode(&format!("{} {} {VERSION}\r\n", self.method, self.target));
        for (name, value) in self.headers.iter() {
            bytes.extend(latin1::encode(&format!("{name}: {value}\r\n")));
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Says where `Content-Length` and the body disagree: bytes lost or added on
    /// the way into a file are the commonest reason why a saved request does
    /// not verify.
    pub(crate) fn length_problem(&self) -> Option<String> {
        let said = self.headers.first("content-length")?.trim();
        let actual = self.body.len();
        if said.parse() == Ok(actual) {
            return None;
        }
        let said = crate::output::printable(said);
        Some(format!(
            "Content-Length says {said} bytes, and the body has {actual}: something was lost, added or changed since it was sent"
        ))
    }

    /// The URL that was called, as far as the request says: scheme `http` unless
    /// the request line holds a whole URL.
    pub(crate) fn url(&self) -> String {
        if self.target.starts_with("http://") || self.target.starts_with("https://") {
            return self.target.clone();
        }
        let host = self.headers.first("host").unwrap_or("localhost");
        format!("http://{host}{}", self.target)
    }
}

fn malformed(what: &str) -> Error {
    Error::usage(
        "malformed_request",
        format!("the text is no HTTP request: {what}"),
    )
}

/// The next line without its end; `None` where no line end is left.
fn take_line<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_may_end_either_way_and_the_body_keeps_every_byte() {
        for text in [
            &b"POST /webhooks/s?a=1 HTTP/1.1\r\nHost: h\r\nX-A: \xee1\r\n\r\n{\r\n}\n"[..],
            &b"POST /webhooks/s?a=1 HTTP/1.1\nHost: h\nX-A: \xee1\n\n{\r\n}\n"[..],
        ] {
            let request = RawRequest::parse(text).unwrap();
            assert_eq!(request.method, "POST");
            assert_eq!(request.url(), "http://h/webhooks/s?a=1");
            assert_eq!(request.headers.first("x-a"), Some("\u{ee}1"));
            assert_eq!(request.body, b"{\r\n}\n");
        }
    }

    #[test]
    fn a_body_of_another_length_than_announced_is_said() {
        let problem = |text: &[u8]| RawRequest::parse(text).unwrap().length_problem();
        let said = problem(b"POST / HTTP/1.1\nContent-Length: 3\n\nabcd").unwrap();
        assert!(said.contains("says 3") && said.contains("has 4"), "{said}");
        assert_eq!(problem(b"POST / HTTP/1.1\nContent-Length: 4\n\nabcd"), None);
        assert_eq!(problem(b"POST / HTTP/1.1\n\nabcd"), None);
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for text in [
            "",
            "POST / HTTP/1.1",
            "POST /\n\n",
            "hello\n\n",
            "POST / HTTP/1.1\nX\n\n",
        ] {
            assert!(RawRequest::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_request_reads_back_the_same(
            body: Vec<u8>, values in prop::collection::vec("[!-~é][ -~é]{0,20}[!-~]", 0..5),
        ) {
            let mut headers = Headers::new();
            for value in &values {
                headers.push("X-Value", value.as_str());
            }
            let request = RawRequest {
                method: "POST".to_owned(), target: "/a?b".to_owned(), headers, body,
            };
            let back = RawRequest::parse(&request.to_bytes()).unwrap();
            prop_assert_eq!(back.body, request.body);
            prop_assert_eq!(back.headers, request.headers);
        }

        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes: Vec<u8>) {
            RawRequest::parse(&bytes).ok();
        }
    }
}
