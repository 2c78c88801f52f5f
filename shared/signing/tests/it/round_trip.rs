//! What we sign verifies, and nothing else does.

use hookstead_signing::{
    Candidate, Headers, Request, Scheme, Secret, SecretEncoding, SignError, SignInput, Signed,
    Timestamp, builtin, dedupe_key, extract, kinds, sample, sign, verify,
};

pub(crate) const URL: &str = "https://hooks.example.test/in?x=1";

pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_timestamp(1_767_258_000).unwrap()
}

/// A secret that fits the kind, and another one.
pub(crate) fn secrets(kind: &str, scheme: &Scheme) -> (Secret, Secret) {
    let pair = |one: &str, other: &str| (Secret::new(one).unwrap(), Secret::new(other).unwrap());
    match kind {
        "braintree" => pair(
            r#"{"public_key":"pub","private_key":"one"}"#,
            r#"{"public_key":"pub","private_key":"two"}"#,
        ),
        "box" => pair(
            r#"{"primary":"one","secondary":"two"}"#,
            r#"{"primary":"three","secondary":"four"}"#,
        ),
        "livekit" => pair(
            r#"{"api_key":"k","api_secret":"one"}"#,
            r#"{"api_key":"k","api_secret":"two"}"#,
        ),
        "contentful" => pair(&"a".repeat(64), &"b".repeat(64)),
        _ => match (scheme.secret.encoding, &scheme.secret.prefix) {
            (SecretEncoding::Base64, Some(prefix)) => {
                pair(&format!("{prefix}AQIDBAUG"), &format!("{prefix}BQYHCAkK"))
            }
            (SecretEncoding::Base64, None) => pair("AQIDBAUG", "BQYHCAkK"),
            (SecretEncoding::Hex, _) => pair("0a0b0c0d", "0a0b0c0e"),
            _ if scheme.basic.is_some() => pair("user:one", "user:two"),
            _ => pair("one-secret", "two-secret"),
        },
    }
}

pub(crate) fn request<'a>(signed: &'a Signed) -> Request<'a> {
    Request {
        method: "POST",
        url: &signed.url,
        headers: &signed.headers,
        body: &signed.body,
        decoded_body: None,
    }
}

pub(crate) fn signed(kind: &str, scheme: &Scheme, secret: &Secret) -> Result<Signed, SignError> {
    let sample = sample(kind, scheme, None, "evt_1", now());
    let input = SignInput {
        method: "POST",
        url: URL,
        headers: &sample.headers,
        body: &sample.body,
        now: now(),
        id: "evt_1",
    };
    sign(scheme, secret, &input)
}

pub(crate) fn candidate(secret: &Secret) -> [Candidate<'_>; 1] {
    let label = "current";
    [Candidate { label, secret }]
}

/// Kinds whose private keys only the provider has.
const NEED_PRIVATE_KEYS: [&str; 7] = [
    "aws-sns",
    "fal-ai",
    "paddle-classic",
    "paypal",
    "plaid",
    "sendgrid",
    "wise",
];

/// Kinds with an Ed25519 key pair, tested apart.
const ED25519: [&str; 3] = ["discord", "standard-webhooks-ed25519", "telnyx"];

pub(crate) fn signable() -> impl Iterator<Item = &'static str> {
    kinds().filter(|kind| !NEED_PRIVATE_KEYS.contains(kind) && !ED25519.contains(kind))
}

#[test]
fn what_we_sign_verifies_for_every_kind_that_can_sign() {
    for kind in signable() {
        let scheme = builtin(kind).unwrap();
        let (right, wrong) = secrets(kind, scheme);
        let signed = signed(kind, scheme, &right).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let request = request(&signed);
        let verified = verify(scheme, &request, &candidate(&right), now(), None)
            .unwrap_or_else(|rejection| panic!("{kind}: {rejection}"));
        assert!(
            verify(scheme, &request, &candidate(&wrong), now(), None).is_err(),
            "{kind} verifies under another secret"
        );
        let extracted = extract(scheme, &request, &verified);
        if scheme.event.event_type.is_some() {
            assert!(extracted.event_type.is_some(), "{kind} has no event type");
        }
        if scheme.event.id.is_some() {
            let key = dedupe_key(scheme, &request, &verified, &extracted);
            assert!(key.is_some(), "{kind} has no key");
        }
    }
}

#[test]
fn kinds_with_private_keys_say_so() {
    for kind in NEED_PRIVATE_KEYS {
        let scheme = builtin(kind).unwrap();
        let secret = Secret::new("x").unwrap();
        let error = signed(kind, scheme, &secret).unwrap_err();
        assert!(
            matches!(error, SignError::NeedsPrivateKey(_)),
            "{kind}: {error}"
        );
    }
}

#[test]
fn ed25519_kinds_sign_with_a_seed() {
    use ring::signature::KeyPair as _;
    let seed = [7; 32];
    let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    for kind in ED25519 {
        let scheme = builtin(kind).unwrap();
        let secret = Secret::new(hex::encode(seed)).unwrap();
        let public = Secret::new(hex::encode(pair.public_key().as_ref())).unwrap();
        let signed = signed(kind, scheme, &secret).unwrap();
        verify(scheme, &request(&signed), &candidate(&public), now(), None)
            .unwrap_or_else(|rejection| panic!("{kind}: {rejection}"));
    }
}

/// Kinds that sign the whole body with a shared key.
fn body_signers() -> impl Iterator<Item = &'static str> {
    signable().filter(|kind| {
        let rule = builtin(kind).unwrap().signature.as_ref();
        rule.is_some_and(|rule| {
            rule.step.is_none()
                && rule
                    .content
                    .iter()
                    .any(|template| template.as_str().contains("{body}"))
        })
    })
}

#[test]
fn a_flip_of_any_byte_of_the_body_is_refused() {
    for kind in body_signers() {
        let scheme = builtin(kind).unwrap();
        let (secret, _) = secrets(kind, scheme);
        let signed = signed(kind, scheme, &secret).unwrap();
        for at in 0..signed.body.len() {
            let mut body = signed.body.clone();
            body[at] ^= 1;
            let request = Request {
                body: &body,
                ..request(&signed)
            };
            assert!(
                verify(scheme, &request, &candidate(&secret), now(), None).is_err(),
                "{kind} accepts a changed byte {at}"
            );
        }
    }
}

#[test]
fn a_flip_of_any_byte_of_the_signature_is_refused() {
    for kind in body_signers() {
        let scheme = builtin(kind).unwrap();
        let (secret, _) = secrets(kind, scheme);
        let signed = signed(kind, scheme, &secret).unwrap();
        let lines: Vec<_> = signed.headers.iter().collect();
        let signature_line = |name: &str| {
            let name = name.to_lowercase();
            name.contains("signature")
                && !name.contains("version")
                && !name.contains("algorithm")
                && !name.contains("timestamp")
        };
        for (line, (name, value)) in lines
            .iter()
            .enumerate()
            .filter(|(_, (name, _))| signature_line(name))
        {
            for at in 0..value.len() {
                let mut bytes = value.as_bytes().to_vec();
                bytes[at] ^= 1;
                let changed = String::from_utf8(bytes).unwrap();
                if harmless(kind, name, value, at) {
                    continue;
                }
                let headers =
                    Headers::from_pairs(lines.iter().enumerate().map(|(other, (name, value))| {
                        let value = if other == line { &changed } else { *value };
                        (*name, value)
                    }));
                let request = Request {
                    headers: &headers,
                    ..request(&signed)
                };
                let verdict = verify(scheme, &request, &candidate(&secret), now(), None);
                assert!(
                    verdict.is_err(),
                    "{kind} accepts {name} with byte {at} changed"
                );
            }
        }
    }
}

/// Box sends two signatures, one of which is enough; two libraries ignore the version.
fn harmless(kind: &str, name: &str, value: &str, at: usize) -> bool {
    kind == "box"
        || (matches!(kind, "replicate" | "liveblocks")
            && name == "webhook-signature"
            && at < value.find(',').unwrap())
}

#[test]
fn no_key_at_all_never_verifies() {
    for kind in kinds() {
        let scheme = builtin(kind).unwrap();
        let headers = Headers::new();
        let request = Request {
            method: "POST",
            url: URL,
            headers: &headers,
            body: b"{}",
            decoded_body: None,
        };
        assert!(
            verify(scheme, &request, &[], now(), None).is_err(),
            "{kind}"
        );
        let secret = Secret::new("x").unwrap();
        assert!(
            verify(scheme, &request, &candidate(&secret), now(), None).is_err(),
            "{kind} accepts a request without any signature"
        );
    }
}
