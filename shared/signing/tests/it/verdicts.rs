//! Verdicts on hostile and awkward requests.

use hookstead_signing::{
    Headers, Reason, Request, Scheme, Secret, SignInput, builtin, dedupe_key, explain, extract,
    sign, verify,
};

use crate::round_trip::{URL, candidate, now, request};

pub(crate) const KEY: &str = "whk_test_key_2f6c1d9a7b3e5041";

/// A scheme that signs the body alone, as a user would write it.
pub(crate) fn custom() -> Scheme {
    Scheme::from_toml(
        r#"
        name = "custom"
        [signature]
        algorithm = "hmac-sha256"
        from = "header:X-Signature"
        encoding = "hex"
        content = "{body}"
        "#,
    )
    .unwrap()
}

fn reason(scheme: &Scheme, secret: &str, headers: &Headers, body: &[u8]) -> Option<Reason> {
    let secret = Secret::new(secret).unwrap();
    let request = Request {
        method: "POST",
        url: URL,
        headers,
        body,
        decoded_body: None,
    };
    let verdict = verify(scheme, &request, &candidate(&secret), now(), None);
    verdict.err().map(|rejection| rejection.reason)
}

#[test]
fn rec_01_the_bytes_that_arrived_are_verified() {
    let body = br#"{ "b":1, "a":2.0, "u":"\u00e9", "s":"a\/b" }"#;
    let signature = "56fad93f81bd0bc9f004fa78cba1a9e25713c1fe32d8a02d7e56a671eb3836b1";
    let headers = Headers::from_pairs([("X-Signature", signature)]);
    assert_eq!(reason(&custom(), KEY, &headers, body), None);
    let without_blank = br#"{"b":1, "a":2.0, "u":"\u00e9", "s":"a\/b" }"#;
    assert_eq!(
        reason(&custom(), KEY, &headers, without_blank),
        Some(Reason::Mismatch)
    );
}

#[test]
fn rec_02_signatures_of_any_length_are_only_refused() {
    let long = "a".repeat(10_000);
    for value in ["", "a", &long[..63], &long[..65], &long] {
        let headers = Headers::from_pairs([("X-Signature", value)]);
        assert!(reason(&custom(), KEY, &headers, b"{}").is_some());
        let value = format!("sha256={value}");
        let headers = Headers::from_pairs([("X-Hub-Signature-256", value)]);
        assert!(reason(builtin("github").unwrap(), KEY, &headers, b"{}").is_some());
    }
}

#[test]
fn rec_03_unknown_algorithm_labels_are_only_refused() {
    for value in ["md9=abc", "=abc", "abc", "sha256", "sha256=abc=def"] {
        let headers = Headers::from_pairs([("X-Hub-Signature-256", value)]);
        let reason = reason(builtin("github").unwrap(), KEY, &headers, b"{}").unwrap();
        assert!(
            matches!(reason, Reason::MalformedSignature | Reason::Mismatch),
            "{value}: {reason}"
        );
    }
}

#[test]
fn rec_04_a_missing_signature_is_a_failure() {
    for headers in [
        Headers::new(),
        Headers::from_pairs([("X-Signature", "")]),
        Headers::from_pairs([("X-Signature", ""), ("X-Signature", "")]),
    ] {
        assert_eq!(
            reason(&custom(), KEY, &headers, b"{}"),
            Some(Reason::MissingSignature)
        );
    }
}

#[test]
fn rec_05_an_empty_secret_fails_closed() {
    assert!(Secret::new("").is_err());
    let empty_key = "1fc48334ab8e345f34919ef831f204fc021ce1d4af9afb2d40e06a65c8a06265";
    let headers = Headers::from_pairs([("X-Signature", empty_key)]);
    let request = Request {
        method: "POST",
        url: URL,
        headers: &headers,
        body: br#"{"x":1}"#,
        decoded_body: None,
    };
    let rejection = verify(&custom(), &request, &[], now(), None).unwrap_err();
    assert_eq!(rejection.reason, Reason::NoUsableSecret);
    // A prefix with nothing behind it is an empty key too.
    let secret = Secret::new("whsec_").unwrap();
    let scheme = builtin("standard-webhooks").unwrap();
    let headers = Headers::from_pairs([
        ("webhook-id", "a"),
        ("webhook-timestamp", "1767258000"),
        ("webhook-signature", "v1,AAAA"),
    ]);
    let request = Request {
        headers: &headers,
        ..request
    };
    let rejection = verify(scheme, &request, &candidate(&secret), now(), None).unwrap_err();
    assert_eq!(rejection.reason, Reason::NoUsableSecret);
}

#[test]
fn rec_07_the_window_is_enforced_on_both_sides() {
    let scheme = Scheme::from_toml(
        r#"
        name = "custom"
        [signature]
        algorithm = "hmac-sha256"
        from = "header:X-Signature"
        content = "{ts}.{body}"
        [timestamp]
        from = "header:X-Timestamp"
        "#,
    )
    .unwrap();
    let secret = Secret::new(KEY).unwrap();
    let headers = Headers::new();
    for (age, wanted) in [
        (299, None),
        (300, None),
        (-5, None),
        (-299, None),
        (301, Some(Reason::Stale)),
        (-301, Some(Reason::Future)),
        (86_400, Some(Reason::Stale)),
    ] {
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: b"{}",
            now: now() - time::Duration::seconds(age),
            id: "x",
        };
        let signed = sign(&scheme, &secret, &input).unwrap();
        let verdict = verify(&scheme, &request(&signed), &candidate(&secret), now(), None);
        let rejection = verdict.err();
        assert_eq!(
            rejection.as_ref().map(|rejection| rejection.reason.clone()),
            wanted
        );
        if let Some(rejection) = rejection {
            assert_eq!(rejection.skew_s, Some(age));
        }
        let wide = verify(
            &scheme,
            &request(&signed),
            &candidate(&secret),
            now(),
            Some(90_000),
        );
        assert!(wide.is_ok(), "the source's own tolerance counts");
        let narrow = verify(
            &scheme,
            &request(&signed),
            &candidate(&secret),
            now(),
            Some(0),
        );
        assert!(narrow.is_err());
    }
}

#[test]
fn rec_09_multi_byte_text_verifies() {
    let body = "{\"msg\":\"ok 😊 café\"}".as_bytes();
    let signature = "ec463e858df80dc01cfeb73160a366ed16ad9a4bcf7a0e490a7a20bd81f2b5ef";
    let headers = Headers::from_pairs([("X-Signature", signature)]);
    assert_eq!(reason(&custom(), KEY, &headers, body), None);
}

#[test]
fn rec_10_header_names_have_no_case() {
    let body = br#"{"type":"order.paid","id":"evt_1"}"#;
    let secret = Secret::new("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let scheme = builtin("standard-webhooks").unwrap();
    for case in [str::to_lowercase, str::to_uppercase, |name: &str| {
        name.replace("webhook", "WebHook")
    }] {
        let headers = Headers::from_pairs([
            (case("webhook-id"), "msg_test_0001"),
            (case("webhook-timestamp"), "1700000000"),
            (
                case("webhook-signature"),
                "v1,fudYf6kWjtWkWBYtw0XhXMTmnEhEV2+b8EQfkwPfa4Q=",
            ),
        ]);
        let request = Request {
            method: "POST",
            url: URL,
            headers: &headers,
            body,
            decoded_body: None,
        };
        let now = time::OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
        let verified = verify(scheme, &request, &candidate(&secret), now, None).unwrap();
        let extracted = extract(scheme, &request, &verified);
        assert_eq!(extracted.event_id.as_deref(), Some("msg_test_0001"));
        assert_eq!(extracted.event_type.as_deref(), Some("order.paid"));
    }
}

#[test]
fn rec_17_every_wrong_signature_of_a_probe_is_refused() {
    let scheme = builtin("discord").unwrap();
    let key = "2824a5ad680d324d9f2797aa69644f1fa5ed71a35f966d1d2f7e135099badd59";
    let body = br#"{"id":"1179000000000000002","application_id":"1","type":2,"data":{"name":"foo"},"version":1}"#;
    let right = "1436602942a07e1c71e6defb2e4664cf8fda96d316beb5a7d5ec85826c6198ddfce788127e38c59aac6ac8ca0688215e762419d11da7dc1c9f7ea51f97b5a007";
    let wrong = "00".repeat(64);
    let ask = |signature: &str, ts: Option<&str>| {
        let mut headers = Headers::from_pairs([("X-Signature-Ed25519", signature)]);
        if let Some(ts) = ts {
            headers.push("X-Signature-Timestamp", ts);
        }
        reason(scheme, key, &headers, body)
    };
    assert_eq!(ask(right, Some("1767258000")), None);
    assert_eq!(ask(&wrong, Some("1767258000")), Some(Reason::Mismatch));
    assert_eq!(ask("no hex", Some("1767258000")), Some(Reason::Mismatch));
    assert_eq!(ask(right, Some("1767258001")), Some(Reason::Mismatch));
    assert_eq!(ask(right, None), Some(Reason::MissingTimestamp));
}

#[test]
fn a_body_five_thousand_levels_deep_is_verified_and_read_by_every_kind() {
    let deep = format!(
        r#"{{"id":"e","type":"t","x":{}{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    for kind in crate::round_trip::signable() {
        let scheme = builtin(kind).unwrap();
        let (secret, _) = crate::round_trip::secrets(kind, scheme);
        let headers = Headers::from_pairs([("Content-Type", "application/json")]);
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: deep.as_bytes(),
            now: now(),
            id: "x",
        };
        // Kinds that put something into the body cannot sign this one; it is judged all the same.
        let Ok(signed) = sign(scheme, &secret, &input) else {
            assert!(reason(scheme, secret.expose(), &headers, deep.as_bytes()).is_some());
            continue;
        };
        let request = request(&signed);
        if let Ok(verified) = verify(scheme, &request, &candidate(&secret), now(), None) {
            let extracted = extract(scheme, &request, &verified);
            let key = dedupe_key(scheme, &request, &verified, &extracted);
            assert!(key.is_none_or(|key| !key.is_empty()), "{kind}");
        }
        let explanation = explain(scheme, &request, &candidate(&secret), now(), None);
        assert!(!explanation.scheme.is_empty());
    }
}

#[test]
fn rec_18_a_scheme_says_which_bytes_of_a_compressed_request_are_signed() {
    let secret = Secret::new(KEY).unwrap();
    let headers = Headers::new();
    let (wire, plain) = (&b"compressed"[..], &br#"{"id":"e1"}"#[..]);
    for (signs, signed_bytes) in [("wire", wire), ("decoded", plain)] {
        let scheme = Scheme::from_toml(&format!(
            "name = \"c\"\nsigns = \"{signs}\"\n[signature]\nalgorithm = \"hmac-sha256\"\nfrom = \"header:X-Signature\"\ncontent = \"{{body}}\"\n[event]\nid = \"body:$.id\""
        ))
        .unwrap();
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: signed_bytes,
            now: now(),
            id: "x",
        };
        let signed = sign(&scheme, &secret, &input).unwrap();
        let request = Request {
            method: "POST",
            url: URL,
            headers: &signed.headers,
            body: wire,
            decoded_body: Some(plain),
        };
        let verified = verify(&scheme, &request, &candidate(&secret), now(), None).unwrap();
        assert_eq!(
            extract(&scheme, &request, &verified).event_id.as_deref(),
            Some("e1")
        );
    }
}

#[test]
fn rec_24_values_that_name_nothing_are_no_ids() {
    let scheme = Scheme {
        event: builtin("stripe").unwrap().event.clone(),
        ..custom()
    };
    let secret = Secret::new(KEY).unwrap();
    let headers = Headers::new();
    let bodies = [
        "null",
        "[]",
        "\"x\"",
        "42",
        "true",
        "",
        " ",
        "{\"id\":0}",
        "{\"id\":null}",
        "{\"id\":{}}",
        "{\"id\":\"  \"}",
        "{\"id\":false}",
        "{\"id\":\"a\"",
        "{\"id\":[]}",
    ];
    for body in bodies {
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: body.as_bytes(),
            now: now(),
            id: "x",
        };
        let signed = sign(&scheme, &secret, &input).unwrap();
        let request = request(&signed);
        let verified = verify(&scheme, &request, &candidate(&secret), now(), None).unwrap();
        let extracted = extract(&scheme, &request, &verified);
        assert_eq!(extracted.event_id, None, "{body}");
        assert_eq!(
            dedupe_key(&scheme, &request, &verified, &extracted),
            None,
            "{body}"
        );
    }
}
