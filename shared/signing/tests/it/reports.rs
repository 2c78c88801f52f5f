//! What a verdict and an explanation tell.

use hookstead_signing::{Candidate, Headers, Request, Secret, explain, verify};

use crate::round_trip::{URL, candidate, now};
use crate::verdicts::{KEY, custom};

#[test]
fn the_label_of_the_version_that_matched_is_reported() {
    let (old, new) = (Secret::new("old").unwrap(), Secret::new(KEY).unwrap());
    let candidates = [
        Candidate {
            label: "AWSCURRENT",
            secret: &old,
        },
        Candidate {
            label: "AWSPENDING",
            secret: &new,
        },
    ];
    let signature = "ec463e858df80dc01cfeb73160a366ed16ad9a4bcf7a0e490a7a20bd81f2b5ef";
    let headers = Headers::from_pairs([("X-Signature", signature)]);
    let request = Request {
        method: "POST",
        url: URL,
        headers: &headers,
        body: "{\"msg\":\"ok 😊 café\"}".as_bytes(),
        decoded_body: None,
    };
    let verified = verify(&custom(), &request, &candidates, now(), None).unwrap();
    assert_eq!(verified.label, "AWSPENDING");
    let rejection = verify(&custom(), &request, &candidates[..1], now(), None).unwrap_err();
    assert_eq!(rejection.labels_tried, ["AWSCURRENT"]);
    assert!(rejection.reason.could_be_wrong_secret());
}

#[test]
fn explanations_say_what_is_wrong_and_hold_no_secret() {
    let signature = "ec463e858df80dc01cfeb73160a366ed16ad9a4bcf7a0e490a7a20bd81f2b5ef";
    let secret = Secret::new(KEY).unwrap();
    for (value, body, hint) in [
        (
            signature.to_uppercase(),
            "{\"msg\":\"ok 😊 café\"}",
            "upper-case",
        ),
        (
            signature.to_owned(),
            "{ \"msg\": \"ok 😊 café\" }",
            "without blanks",
        ),
        (
            signature.to_owned(),
            "{\"msg\":\"ok 😊 café\"}\n",
            "blanks at its end",
        ),
        (signature.to_owned(), "{}", "another endpoint"),
    ] {
        let headers = Headers::from_pairs([("X-Signature", value)]);
        let request = Request {
            method: "POST",
            url: URL,
            headers: &headers,
            body: body.as_bytes(),
            decoded_body: None,
        };
        let explanation = explain(&custom(), &request, &candidate(&secret), now(), None);
        assert!(!explanation.verified);
        let text = format!("{explanation}");
        let json = serde_json::to_string(&explanation).unwrap();
        assert!(text.contains(hint), "{text}");
        assert!(!text.contains(KEY) && !json.contains(KEY));
        assert!(!text.contains("café") && !json.contains("café"));
    }
}
