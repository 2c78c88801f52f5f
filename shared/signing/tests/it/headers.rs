//! Headers that are sent several times, half broken, or not at all.

use hookstead_signing::{Headers, Reason};

use crate::quirks::{check, rewritten, verdict};

#[test]
fn a_repeated_line_is_refused_where_there_is_one_signature() {
    let twice = |extra: &'static str| {
        move |value: &str| {
            vec![
                value.to_owned(),
                if extra.is_empty() {
                    value.to_owned()
                } else {
                    extra.to_owned()
                },
            ]
        }
    };
    let run = |kind: &str, header: &str, extra| {
        let (signed, secret) = rewritten(kind, b"{}", header, twice(extra));
        verdict(kind, &signed, &secret)
    };
    for extra in ["", "sha256=00"] {
        assert_eq!(
            run("github", "X-Hub-Signature-256", extra),
            Err(Reason::MalformedSignature)
        );
    }
    assert_eq!(
        run("orb", "X-Orb-Timestamp", ""),
        Err(Reason::MalformedTimestamp)
    );
    assert_eq!(
        run("twitch", "Twitch-Eventsub-Message-Id", "other"),
        Err(Reason::UnexpectedValue(
            "header:Twitch-Eventsub-Message-Id".into()
        ))
    );
    assert_eq!(
        run("sanity", "sanity-webhook-signature", ""),
        Err(Reason::MalformedSignature)
    );
    assert_eq!(
        run("standard-webhooks", "webhook-signature", "v1,AAAA"),
        Ok(())
    );
    assert_eq!(
        run("gitlab", "X-Gitlab-Token", "other"),
        Err(Reason::MalformedSignature)
    );
}

#[test]
fn a_broken_group_does_not_hide_a_good_one() {
    let header = "Persona-Signature";
    for broken in ["v1=aa", "t=5", "junk", "t=,v1=aa"] {
        let before = |value: &str| format!("{broken} {value}");
        let after = |value: &str| format!("{value} {broken}");
        assert_eq!(check("persona", header, before), Ok(()), "{broken}");
        assert_eq!(check("persona", header, after), Ok(()), "{broken}");
    }
    assert_eq!(
        check("persona", header, |_| "v1=aa".to_owned()),
        Err(Reason::MissingTimestamp)
    );
}

#[test]
fn the_second_signature_of_hookdeck_counts_only_beside_the_first() {
    let header = "x-hookdeck-signature";
    let (mut signed, secret) = rewritten("hookdeck", b"{}", header, |value| vec![value.to_owned()]);
    let good = signed.headers.first(header).unwrap().to_owned();
    let mut with = |first: Option<&str>| {
        let mut headers = Headers::new();
        if let Some(first) = first {
            headers.push(header, first);
        }
        headers.push("x-hookdeck-signature-2", &good);
        signed.headers = headers;
        verdict("hookdeck", &signed, &secret)
    };
    assert_eq!(with(Some("AAAA")), Ok(()));
    for first in [None, Some("")] {
        assert_eq!(
            with(first),
            Err(Reason::MissingField("header:x-hookdeck-signature".into()))
        );
    }
}
