//! Contentful: a canonical form of the whole request.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::reason::Reason;
use crate::view::View;

/// What Node's `querystring.escape` leaves alone beside letters and digits.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// What JavaScript's `encodeURI` leaves alone: the same, and what separates parts of an address.
const URI: &AsciiSet = &QUERY
    .remove(b';')
    .remove(b',')
    .remove(b'/')
    .remove(b'?')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=')
    .remove(b'+')
    .remove(b'$')
    .remove(b'#');

const SIGNED_HEADERS: &str = "x-contentful-signed-headers";
const TIMESTAMP: &str = "x-contentful-timestamp";

/// Most header names read from the list; the sender uses four.
const MAX_HEADERS: usize = 100;

/// Method, path with query, listed headers and body, a line each.
///
/// The list is not signed as it was sent, but as the sender's library writes it: the names of the
/// listed headers that are there, in order, always with itself and the timestamp.
pub(crate) fn canonical(view: &View<'_>, ts: Option<&str>) -> Result<Vec<u8>, Reason> {
    let request = view.request;
    let list = request.headers.first(SIGNED_HEADERS).unwrap_or_default();
    let listed: Vec<&str> = list.trim().split(',').take(MAX_HEADERS).collect();
    if listed.len() < 2 {
        return Err(Reason::MissingField(format!("header:{SIGNED_HEADERS}")));
    }
    let mut headers = BTreeMap::new();
    for (name, value) in request.headers.iter() {
        let name = name.trim().to_ascii_lowercase();
        if !listed.contains(&name.as_str()) {
            continue;
        }
        // A header sent twice has no one value.
        if let Some(first) = headers.insert(name, value.trim().to_owned())
            && first != value.trim()
        {
            return Err(Reason::UnexpectedValue("signed header".into()));
        }
    }
    let ts = ts.ok_or(Reason::MissingTimestamp)?;
    headers.insert(TIMESTAMP.to_owned(), ts.to_owned());
    headers.insert(SIGNED_HEADERS.to_owned(), String::new());
    let names: Vec<_> = headers.keys().cloned().collect();
    headers.insert(SIGNED_HEADERS.to_owned(), names.join(","));
    let headers: Vec<_> = headers
        .into_iter()
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    let head = [
        request.method,
        &path_and_query(request.url),
        &headers.join(";"),
        "",
    ];
    let mut text = head.join("\n").into_bytes();
    text.extend_from_slice(view.signed_body());
    Ok(text)
}

/// The query is escaped as one value and then once more with the path.
fn path_and_query(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find(['/', '?']).map_or("/", |at| &rest[at..]);
    let mut parts = path.split('?');
    let path = parts.next().filter(|path| !path.is_empty()).unwrap_or("/");
    let joined = match parts.next().filter(|query| !query.is_empty()) {
        Some(query) => format!("{path}?{}", utf8_percent_encode(query, QUERY)),
        None => path.to_owned(),
    };
    utf8_percent_encode(&joined, URI).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped_twice() {
        assert_eq!(
            path_and_query("https://a.test/x y?a=1&b=%20"),
            "/x%20y?a%253D1%2526b%253D%252520"
        );
        assert_eq!(path_and_query("https://a.test"), "/");
    }
}
