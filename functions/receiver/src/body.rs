//! The body: content coding, and the parsed copy.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use hookstead_domain::ErrorCode;
use hookstead_signing::Headers;

/// How the body was coded for transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The bytes are the message.
    Identity,
    /// The bytes are gzip of the message.
    Gzip,
}

/// Reads `Content-Encoding`.
///
/// Only gzip is known to be used by webhook senders; anything else is refused,
/// as is a coding applied twice.
///
/// # Errors
///
/// [`ErrorCode::UnsupportedCoding`].
pub fn coding(headers: &Headers) -> Result<Coding, ErrorCode> {
    let mut coding = Coding::Identity;
    let listed = headers
        .get_all("content-encoding")
        .flat_map(|value| value.split(','));
    for name in listed.map(str::trim).filter(|name| !name.is_empty()) {
        let is_gzip = name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip");
        match coding {
            _ if name.eq_ignore_ascii_case("identity") => {}
            Coding::Identity if is_gzip => coding = Coding::Gzip,
            _ => return Err(ErrorCode::UnsupportedCoding),
        }
    }
    Ok(coding)
}

/// Undoes the coding. `max_bytes` bounds the result, so that a small body
/// cannot grow without end.
///
/// # Errors
///
/// [`ErrorCode::BodyTooLarge`] past the bound, [`ErrorCode::MalformedRequest`]
/// where the bytes are not gzip.
pub fn decode(coding: Coding, wire: &[u8], max_bytes: usize) -> Result<Cow<'_, [u8]>, ErrorCode> {
    match coding {
        Coding::Identity => Ok(Cow::Borrowed(wire)),
        Coding::Gzip => {
            let mut decoded = Vec::new();
            let bound = max_bytes as u64 + 1;
            MultiGzDecoder::new(wire)
                .take(bound)
                .read_to_end(&mut decoded)
                .map_err(|_| ErrorCode::MalformedRequest)?;
            if decoded.len() > max_bytes {
                return Err(ErrorCode::BodyTooLarge);
            }
            Ok(Cow::Owned(decoded))
        }
    }
}

/// The media type of a `Content-Type` value: lower case, without parameters.
///
/// `None` where there is none or it has no form of one; such a value is the
/// sender's free text and is neither logged nor acted on.
pub(crate) fn media_type(headers: &Headers) -> Option<String> {
    /// Longest name of a registered media type with its tree, by RFC 6838: 127 + 1 + 127.
    const MAX_LEN: usize = 255;
    let value = headers.first("content-type")?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let (kind, subtype) = essence.split_once('/')?;
    (essence.len() <= MAX_LEN && is_token(kind) && is_token(subtype))
        .then(|| essence.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn with(name: &str, value: &str) -> Headers {
        Headers::from_pairs([(name, value)])
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn codings_are_read_in_any_case_and_unknown_ones_refused() {
        let read = |value| coding(&with("Content-Encoding", value));
        assert_eq!(read("gzip"), Ok(Coding::Gzip));
        assert_eq!(read("GZIP"), Ok(Coding::Gzip));
        assert_eq!(read("identity"), Ok(Coding::Identity));
        assert_eq!(read(""), Ok(Coding::Identity));
        assert_eq!(coding(&Headers::new()), Ok(Coding::Identity));
        for other in ["br", "zstd", "deflate", "gzip, gzip", "gzip, br"] {
            assert_eq!(read(other), Err(ErrorCode::UnsupportedCoding), "{other}");
        }
    }

    #[test]
    fn a_body_that_grows_past_the_limit_is_refused() {
        let bomb = gzip(&vec![b'a'; 1_000_000]);
        assert!(bomb.len() < 2_000);
        assert_eq!(
            decode(Coding::Gzip, &bomb, 999_999),
            Err(ErrorCode::BodyTooLarge)
        );
        assert_eq!(
            decode(Coding::Gzip, &bomb, 1_000_000).unwrap().len(),
            1_000_000
        );
    }

    #[test]
    fn bytes_that_are_not_gzip_are_malformed() {
        for bytes in [&b"not gzip"[..], b"", &gzip(b"cut short")[..10]] {
            assert_eq!(
                decode(Coding::Gzip, bytes, 100),
                Err(ErrorCode::MalformedRequest)
            );
        }
    }

    #[test]
    fn media_types_are_read_without_parameters_and_in_any_case() {
        let read = |value| media_type(&with("content-type", value));
        for (value, expected) in [
            ("application/json", Some("application/json")),
            ("application/json; charset=utf-8", Some("application/json")),
            ("Application/JSON", Some("application/json")),
            (
                "application/vnd.acme.v2+json",
                Some("application/vnd.acme.v2+json"),
            ),
            ("whatever secret", None),
            ("a/b/c", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(read(value).as_deref(), expected, "{value}");
        }
    }
}
