//! Which request headers are stored with an event.

use hookstead_signing::{Headers, Location, Scheme};
use serde_json::{Map, Value};

/// Headers that carry credentials, or that speak of the hop and not of the event.
const NEVER_STORED: [&str; 9] = [
    "authorization",
    "connection",
    "cookie",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Most headers that are stored. The gateway takes 10 KB of them; more than
/// this many is no provider's webhook.
const MAX_HEADERS: usize = 100;

/// The headers as an object of lower-case name to value, or to a list of values
/// where a name came more than once.
///
/// Headers in which `scheme` carries a fixed token are left out like `Authorization`.
pub(crate) fn stored_headers(headers: &Headers, scheme: &Scheme) -> Value {
    let credentials = token_headers(scheme);
    let mut stored = Map::new();
    for (name, value) in headers.iter().take(MAX_HEADERS) {
        let name = name.to_ascii_lowercase();
        let is_credential = credentials
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&name));
        if is_credential || NEVER_STORED.contains(&name.as_str()) {
            continue;
        }
        // PostgreSQL's text holds no NUL; HTTP allows none either, a gateway event could.
        let value = Value::String(value.replace('\0', "\u{fffd}"));
        match stored.get_mut(&name) {
            None => {
                stored.insert(name.replace('\0', "\u{fffd}"), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(stored)
}

fn token_headers(scheme: &Scheme) -> Vec<&str> {
    let places = scheme.token.iter().flat_map(|token| &token.from);
    places
        .filter_map(|place| match place {
            Location::Header(names) => Some(names),
            _ => None,
        })
        .flatten()
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_are_left_out_and_repeats_become_lists() {
        let headers = Headers::from_pairs([
            ("X-Event", "a"),
            ("x-event", "b"),
            ("X-EVENT", "c"),
            ("Authorization", "Bearer CANARY"),
            ("Cookie", "CANARY"),
            ("X-Gitlab-Token", "CANARY"),
            ("User-Agent", "test\u{ee}1"),
        ]);
        let stored = stored_headers(&headers, hookstead_signing::builtin("gitlab").unwrap());
        assert_eq!(
            stored,
            json!({ "x-event": ["a", "b", "c"], "user-agent": "test\u{ee}1" })
        );
    }
}
