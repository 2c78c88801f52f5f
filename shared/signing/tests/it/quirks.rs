//! What official libraries do where one would not expect it.

use hookstead_signing::{
    Headers, Reason, Request, Scheme, Secret, SignInput, Signed, builtin, dedupe_key, extract,
    sign, verify,
};

use crate::round_trip::{URL, candidate, now, request, secrets, signed};

/// Signs a body under `kind` and gives the request with one header rewritten.
pub(crate) fn rewritten(
    kind: &str,
    body: &[u8],
    header: &str,
    rewrite: impl Fn(&str) -> Vec<String>,
) -> (Signed, Secret) {
    let scheme = builtin(kind).unwrap();
    let (secret, _) = secrets(kind, scheme);
    let headers = Headers::new();
    let input = SignInput {
        method: "POST",
        url: URL,
        headers: &headers,
        body,
        now: now(),
        id: "m1",
    };
    let mut signed = sign(scheme, &secret, &input).unwrap();
    let mut changed = Headers::new();
    for (name, value) in signed.headers.iter() {
        if name.eq_ignore_ascii_case(header) {
            rewrite(value)
                .into_iter()
                .for_each(|value| changed.push(name, value));
        } else {
            changed.push(name, value);
        }
    }
    signed.headers = changed;
    (signed, secret)
}

pub(crate) fn verdict(kind: &str, signed: &Signed, secret: &Secret) -> Result<(), Reason> {
    let scheme = builtin(kind).unwrap();
    verify(scheme, &request(signed), &candidate(secret), now(), None)
        .map(|_| ())
        .map_err(|rejection| rejection.reason)
}

pub(crate) fn check(
    kind: &str,
    header: &str,
    rewrite: impl Fn(&str) -> String,
) -> Result<(), Reason> {
    let (signed, secret) = rewritten(kind, b"{}", header, |value| vec![rewrite(value)]);
    verdict(kind, &signed, &secret)
}

#[test]
fn stripe_signs_the_shortest_form_of_the_time_and_takes_no_blanks() {
    let header = "Stripe-Signature";
    for (kind, header) in [("stripe", header), ("mux", "Mux-Signature")] {
        let padded = check(kind, header, |value| value.replace("t=", "t=000"));
        assert_eq!(padded, Ok(()), "{kind}");
    }
    assert_eq!(
        check("stripe", header, |value| value.replace(',', ", ")),
        Err(Reason::MalformedSignature)
    );
    let (signed, secret) = rewritten("stripe", b"{\"a\":\"\xe9\"}", "", |_| vec![]);
    assert_eq!(
        verdict("stripe", &signed, &secret),
        Err(Reason::MalformedBody)
    );
}

#[test]
fn order_and_unknown_parts_of_pairs_do_not_matter() {
    let swap = |value: &str| {
        let (time, signature) = value.split_once(',').unwrap();
        format!("{signature},{time},v9=x,junk,=,")
    };
    assert_eq!(check("stripe", "Stripe-Signature", swap), Ok(()));
    assert_eq!(
        check("sanity", "sanity-webhook-signature", swap),
        Err(Reason::MalformedSignature)
    );
}

#[test]
fn upper_case_hex_counts_only_where_bytes_are_compared() {
    let upper = |value: &str| {
        let (prefix, hex) = value.split_at(value.find('=').map_or(0, |at| at + 1));
        format!("{prefix}{}", hex.to_uppercase())
    };
    assert_eq!(
        check("twitch", "Twitch-Eventsub-Message-Signature", upper),
        Ok(())
    );
    assert_eq!(check("notion", "X-Notion-Signature", upper), Ok(()));
    assert_eq!(check("lemonsqueezy", "X-Signature", upper), Ok(()));
    for (kind, header) in [
        ("github", "X-Hub-Signature-256"),
        ("zoom", "x-zm-signature"),
        ("razorpay", "X-Razorpay-Signature"),
    ] {
        assert_eq!(check(kind, header, upper), Err(Reason::Mismatch), "{kind}");
    }
    // The prefix is compared with exact case everywhere.
    for (kind, header) in [
        ("notion", "X-Notion-Signature"),
        ("github", "X-Hub-Signature-256"),
    ] {
        assert_eq!(
            check(kind, header, str::to_uppercase),
            Err(Reason::MalformedSignature)
        );
    }
}

#[test]
fn missing_padding_and_foreign_alphabets_are_refused_where_text_is_compared() {
    let bare = |value: &str| value.trim_end_matches('=').to_owned();
    for (kind, header) in [
        ("shopify", "X-Shopify-Hmac-Sha256"),
        ("xero", "x-xero-signature"),
        ("svix", "svix-signature"),
    ] {
        assert_eq!(check(kind, header, bare), Err(Reason::Mismatch), "{kind}");
    }
    let url_safe = |value: &str| value.replace('+', "-").replace('/', "_");
    let changed = check("shopify", "X-Shopify-Hmac-Sha256", |value| {
        format!("{}!", url_safe(value))
    });
    assert_eq!(changed, Err(Reason::Mismatch));
}

#[test]
fn labels_of_versioned_lists_are_read_the_way_each_library_reads_them() {
    let relabel = |value: &str| value.replace("v1,", "v2,");
    let bare = |value: &str| value.replace("v1,", "");
    let header = "webhook-signature";
    for kind in ["replicate", "liveblocks"] {
        assert_eq!(check(kind, header, relabel), Ok(()), "{kind}");
    }
    assert_eq!(check("openai", header, bare), Ok(()));
    for kind in ["standard-webhooks", "openai", "polar"] {
        assert_eq!(
            check(kind, header, relabel),
            Err(Reason::MalformedSignature),
            "{kind}"
        );
    }
    assert_eq!(
        check("standard-webhooks", header, bare),
        Err(Reason::MalformedSignature)
    );
    let joined = |value: &str| format!("v1,AAAA,{value}");
    assert_eq!(
        check("standard-webhooks", header, joined),
        Ok(()),
        "a front end joined two headers"
    );
}

#[test]
fn secrets_without_their_prefix_are_read_the_way_each_library_reads_them() {
    let bare = Secret::new("AQIDBAUG").unwrap();
    let verdict_of = |kind: &str| {
        let scheme = builtin(kind).unwrap();
        let (secret, _) = secrets(kind, scheme);
        let signed = signed(kind, scheme, &secret).unwrap();
        verdict(kind, &signed, &bare)
    };
    assert_eq!(verdict_of("standard-webhooks"), Ok(()));
    assert_eq!(
        verdict_of("openai"),
        Err(Reason::Mismatch),
        "it is used as text"
    );
    assert_eq!(verdict_of("liveblocks"), Err(Reason::NoUsableSecret));
}

#[test]
fn clerk_trims_its_headers_and_others_do_not() {
    let padded = |value: &str| format!(" {value} ");
    for header in ["svix-id", "svix-timestamp", "svix-signature"] {
        assert_eq!(check("clerk", header, padded), Ok(()), "{header}");
    }
    assert_eq!(
        check("github", "X-Hub-Signature-256", padded),
        Err(Reason::MalformedSignature)
    );
    assert_eq!(
        check("shopify", "X-Shopify-Hmac-Sha256", padded),
        Err(Reason::Mismatch)
    );
}

#[test]
fn svix_takes_both_families_of_header_names_and_prefers_its_own() {
    let scheme = builtin("svix").unwrap();
    let (secret, _) = secrets("svix", scheme);
    let own = signed("svix", scheme, &secret).unwrap();
    let renamed = own
        .headers
        .iter()
        .map(|(name, value)| (name.replace("svix-", "webhook-"), value));
    let webhook = Signed {
        headers: Headers::from_pairs(renamed),
        ..own.clone()
    };
    assert_eq!(verdict("svix", &webhook, &secret), Ok(()));
    assert_eq!(
        verdict("clerk", &webhook, &secret),
        Err(Reason::MissingSignature)
    );
    let mut both = own.headers.clone();
    both.push("webhook-id", "other");
    both.push("webhook-signature", "v1,AAAA");
    let both = Signed {
        headers: both,
        ..own
    };
    assert_eq!(verdict("svix", &both, &secret), Ok(()));
}

#[test]
fn only_the_first_signature_counts_for_elevenlabs() {
    let header = "ElevenLabs-Signature";
    let before = |value: &str| value.replace("v0=", "v0=00,v0=");
    let after = |value: &str| format!("{value},v0=00");
    assert_eq!(check("elevenlabs", header, before), Err(Reason::Mismatch));
    assert_eq!(check("elevenlabs", header, after), Ok(()));
}

#[test]
fn easypost_and_box_accept_the_other_writing_of_the_body() {
    let sent = "{\"weight\":12,\"note\":\"caf\u{e9}\"}".as_bytes();
    for (kind, signed_body) in [
        ("easypost", "{\"weight\":12.0,\"note\":\"caf\u{e9}\"}"),
        ("box", "{\"weight\":12,\"note\":\"caf\\u00e9\"}"),
    ] {
        let (mut signed, secret) = rewritten(kind, signed_body.as_bytes(), "", |_| vec![]);
        signed.body = sent.to_vec();
        assert_eq!(verdict(kind, &signed, &secret), Ok(()), "{kind}");
        assert_eq!(
            verdict("github", &signed, &secret),
            Err(Reason::MissingSignature)
        );
    }
}

#[test]
fn limits_of_the_window_are_those_of_each_library() {
    let at = |kind: &str, age_s: i64| {
        let scheme = builtin(kind).unwrap();
        let (secret, _) = secrets(kind, scheme);
        let signed = signed(kind, scheme, &secret).unwrap();
        let later = now() + time::Duration::seconds(age_s);
        verify(scheme, &request(&signed), &candidate(&secret), later, None)
            .map(|_| ())
            .map_err(|rejection| rejection.reason)
    };
    for (kind, age_s, wanted) in [
        ("contentful", 29, Ok(())),
        ("contentful", 30, Err(Reason::Stale)),
        ("box", 600, Ok(())),
        ("box", 601, Err(Reason::Stale)),
        ("box", -1, Err(Reason::Future)),
        ("stripe", 300, Ok(())),
        ("stripe", -100_000, Ok(())),
        ("paddle-billing", 5, Ok(())),
        ("paddle-billing", 6, Err(Reason::Stale)),
        ("linear", 60, Ok(())),
        ("linear", -61, Err(Reason::Future)),
        ("zoom", 1_000_000, Ok(())),
        ("elevenlabs", 1_800, Ok(())),
    ] {
        assert_eq!(at(kind, age_s), wanted, "{kind} at {age_s} s");
    }
}

#[test]
fn a_batch_is_told_apart_by_all_its_ids() {
    let scheme = builtin("hubspot-v1").unwrap();
    let (secret, _) = secrets("hubspot-v1", scheme);
    let key = |body: &str| {
        let headers = Headers::new();
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: body.as_bytes(),
            now: now(),
            id: "x",
        };
        let signed = sign(scheme, &secret, &input).unwrap();
        let request = request(&signed);
        let verified = verify(scheme, &request, &candidate(&secret), now(), None).unwrap();
        let extracted = extract(scheme, &request, &verified);
        dedupe_key(scheme, &request, &verified, &extracted)
    };
    let one = key(r#"[{"eventId":1}]"#);
    assert_eq!(one.as_deref(), Some("1"));
    let two = key(r#"[{"eventId":1},{"eventId":2}]"#);
    assert!(two.as_deref().unwrap().starts_with("batch:"));
    assert_ne!(
        one, two,
        "a retry with more events in it is not a duplicate"
    );
    assert_eq!(two, key(r#"[{"eventId":1,"x":9},{"eventId":2}]"#));
    assert_eq!(key(r#"[{"eventId":1},{}]"#), None);
    assert_eq!(key("[]"), None);
}

#[test]
fn a_signed_time_tells_apart_where_there_is_no_id() {
    let scheme = builtin("calendly").unwrap();
    let (secret, _) = secrets("calendly", scheme);
    let key = |now| {
        let headers = Headers::new();
        let input = SignInput {
            method: "POST",
            url: URL,
            headers: &headers,
            body: b"{}",
            now,
            id: "x",
        };
        let signed = sign(scheme, &secret, &input).unwrap();
        let request = request(&signed);
        let verified = verify(scheme, &request, &candidate(&secret), now, None).unwrap();
        dedupe_key(
            scheme,
            &request,
            &verified,
            &extract(scheme, &request, &verified),
        )
    };
    let first = key(now());
    assert!(first.as_deref().unwrap().starts_with("signed:"));
    assert_eq!(first, key(now()));
    assert_ne!(first, key(now() + time::Duration::seconds(1)));
    // Without a time, equal bodies may be two events.
    let scheme = Scheme {
        timestamp: None,
        ..builtin("dropbox").unwrap().clone()
    };
    let (secret, _) = secrets("dropbox", &scheme);
    let signed = signed("dropbox", &scheme, &secret).unwrap();
    let request: Request<'_> = request(&signed);
    let verified = verify(&scheme, &request, &candidate(&secret), now(), None).unwrap();
    assert_eq!(
        dedupe_key(
            &scheme,
            &request,
            &verified,
            &extract(&scheme, &request, &verified)
        ),
        None
    );
}
