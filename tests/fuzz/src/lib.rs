//! What the fuzz targets share: turning bytes into requests, and what must hold for all of them.

use std::hint::black_box;
use std::net::Ipv4Addr;

use hookstead_egress::{AllowList, Target};
use hookstead_signing::{
    Candidate, EventRule, Headers, JsonPath, Location, Request, Scheme, Secret, Timestamp,
    ValueRule, builtin, dedupe_key, explain, extract, handshake, kinds, sign, verify,
};

const URL: &str = "https://hooks.example.test/in?x=1";

/// Secrets of every shape. None of them is known to the fuzzer's input, so nothing may verify.
const SECRETS: [&str; 5] = [
    "a-secret-text-that-no-input-can-guess-0123456789",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjUPD8I",
    "4f1c0a8e5b6d7c3f4f1c0a8e5b6d7c3f4f1c0a8e5b6d7c3f4f1c0a8e5b6d7c3f",
    r#"{"api_key":"k","api_secret":"unguessable-0123456789","public_key":"p","private_key":"unguessable","primary":"unguessable","secondary":"unguessable"}"#,
    "user:unguessable-0123456789",
];

fn now() -> Timestamp {
    Timestamp::from_unix_timestamp(1_767_258_000).expect("a moment in 2026 is in range")
}

/// Splits the input at its first line feed.
#[must_use]
pub fn split(data: &[u8]) -> Option<(&str, &[u8])> {
    let at = data.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&data[..at]).ok()?;
    Some((head, &data[at + 1..]))
}

/// Puts the text before the first line feed into the signature header of `kind`, the rest into the
/// body.
pub fn judge_signature(kind: &str, data: &[u8]) {
    let (value, body) = split(data).unwrap_or((std::str::from_utf8(data).unwrap_or(""), b""));
    let Some(scheme) = builtin(kind) else { return };
    let places = scheme
        .signature
        .iter()
        .flat_map(|rule| &rule.from)
        .chain(scheme.token.iter().flat_map(|rule| &rule.from))
        .chain(scheme.basic.iter().map(|rule| &rule.from))
        .chain(scheme.jwt.iter().map(|rule| &rule.from));
    let mut headers: Vec<(&str, &str)> = places
        .filter_map(|at| match at {
            Location::Header(names) => Some((names[0].as_str(), value)),
            _ => None,
        })
        .collect();
    headers.extend([
        ("webhook-id", "m"),
        ("webhook-timestamp", "1767258000"),
        ("svix-id", "m"),
        ("svix-timestamp", "1767258000"),
        ("X-Orb-Timestamp", "2026-01-01T09:00:00"),
    ]);
    judge(kind, &headers, body);
}

/// Runs everything a receiver does over one request. Nothing may panic, and nothing may verify.
pub fn judge(kind: &str, headers: &[(&str, &str)], body: &[u8]) {
    let headers = Headers::from_pairs(headers.iter().copied());
    judge_request(
        kind,
        &Request {
            method: "POST",
            url: URL,
            headers: &headers,
            body,
            decoded_body: None,
        },
    );
}

fn judge_request(kind: &str, request: &Request<'_>) {
    let Some(scheme) = builtin(kind) else { return };
    for text in SECRETS {
        let Ok(secret) = Secret::new(text) else {
            continue;
        };
        let candidates = [Candidate {
            label: "fuzz",
            secret: &secret,
        }];
        let verdict = verify(scheme, request, &candidates, now(), None);
        assert!(verdict.is_err(), "{kind} verifies a request nobody signed");
        black_box(handshake(scheme, request, &candidates, now()));
    }
}

/// Follows a path through a body that is signed by us.
pub fn extract_at(path: &str, body: &[u8]) {
    let Ok(path) = path.parse::<JsonPath>() else {
        return;
    };
    let wild = path.as_str().contains("[*]");
    let at = Some(ValueRule::At(Location::Body(path)));
    let Some(github) = builtin("github") else {
        return;
    };
    let event = EventRule {
        id: if wild { None } else { at.clone() },
        dedupe: at,
        ..EventRule::default()
    };
    let scheme = Scheme {
        event,
        ..github.clone()
    };
    let Ok(secret) = Secret::new("known") else {
        return;
    };
    let headers = Headers::new();
    let input = hookstead_signing::SignInput {
        method: "POST",
        url: URL,
        headers: &headers,
        body,
        now: now(),
        id: "m",
    };
    let Ok(signed) = sign(&scheme, &secret, &input) else {
        return;
    };
    let request = Request {
        method: "POST",
        url: &signed.url,
        headers: &signed.headers,
        body: &signed.body,
        decoded_body: None,
    };
    let candidates = [Candidate {
        label: "fuzz",
        secret: &secret,
    }];
    let verified = verify(&scheme, &request, &candidates, now(), None)
        .expect("what we sign verifies, whatever the body is");
    let extracted = extract(&scheme, &request, &verified);
    black_box(dedupe_key(&scheme, &request, &verified, &extracted));
}

/// Reads a scheme, and evaluates it when it can be read.
pub fn read_scheme(text: &str) {
    let Ok(scheme) = Scheme::from_toml(text) else {
        return;
    };
    let again = Scheme::from_json(&scheme.to_json().to_string());
    assert_eq!(again.as_ref(), Ok(&scheme));
    let Ok(secret) = Secret::new(SECRETS[0]) else {
        return;
    };
    let candidates = [Candidate {
        label: "fuzz",
        secret: &secret,
    }];
    let headers = Headers::from_pairs([("X-Signature", "v1=00,t=1")]);
    let request = Request {
        method: "POST",
        url: URL,
        headers: &headers,
        body: text.as_bytes(),
        decoded_body: None,
    };
    black_box(explain(&scheme, &request, &candidates, now(), None));
}

/// Method, URL, header list and body, a line each.
pub fn canonical(data: &[u8]) {
    let Some((method, rest)) = split(data) else {
        return;
    };
    let Some((url, rest)) = split(rest) else {
        return;
    };
    let Some((list, body)) = split(rest) else {
        return;
    };
    let headers = Headers::from_pairs([
        ("x-contentful-signed-headers", list),
        ("x-contentful-timestamp", "1767258000000"),
        ("x-contentful-signature", &"0".repeat(64)),
    ]);
    for kind in ["contentful", "twilio", "hubspot-v2", "trello"] {
        judge_request(
            kind,
            &Request {
                method,
                url,
                headers: &headers,
                body,
                decoded_body: None,
            },
        );
    }
}

/// The first byte chooses the kind; then `name: value` lines up to an empty one, then the body.
pub fn whole(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else {
        return;
    };
    let count = kinds().count();
    let Some(kind) = kinds().nth(usize::from(*choice) % count) else {
        return;
    };
    let mut headers = Headers::new();
    while let Some((line, tail)) = split(rest) {
        rest = tail;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push(name, value.trim());
    }
    let request = Request {
        method: "POST",
        url: URL,
        headers: &headers,
        body: rest,
        decoded_body: None,
    };
    judge_request(kind, &request);
    let (Some(scheme), Ok(secret)) = (builtin(kind), Secret::new(SECRETS[0])) else {
        return;
    };
    let candidates = [Candidate {
        label: "fuzz",
        secret: &secret,
    }];
    black_box(explain(scheme, &request, &candidates, now(), Some(300)));
}

/// Checks a URL as it is checked when it is saved. What passes without exceptions leads to
/// no address that the standard library knows to be special, and has a way to be written.
pub fn judge_target(data: &[u8]) {
    let text = std::str::from_utf8(data).unwrap_or_default();
    black_box(text.parse::<AllowList>().is_ok());
    if Target::parse(text, true).is_err() {
        return;
    }
    let url = url::Url::parse(text).expect("what passes is a URL");
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    match url.host().expect("what passes has a host") {
        url::Host::Ipv4(address) => assert!(!is_special(address)),
        url::Host::Ipv6(address) => match address.to_ipv4() {
            Some(inner) => assert!(!is_special(inner)),
            None => assert!(
                !address.is_unique_local()
                    && !address.is_unicast_link_local()
                    && !address.is_multicast()
            ),
        },
        url::Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            assert!(name != "localhost" && !name.ends_with(".localhost"));
        }
    }
    // Exceptions only ever let more through.
    assert!(Target::parse_allowing(text, true, &"10.0.0.0/8".parse().expect("a block")).is_ok());
}

fn is_special(address: Ipv4Addr) -> bool {
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_unspecified()
}
