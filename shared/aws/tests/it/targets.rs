//! Destinations of AWS.

mod eventbridge;
mod lambda;
mod sqs;

use std::time::Duration;

use hookstead_aws::targets::{Target, TargetFailure, TargetMessage, TargetReceipt};
use hookstead_domain::{Attribute, ErrorClass};

use crate::stand_in::{Answer, StandIn};

/// Longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An envelope as the domain writes it, with every attribute there is.
fn attributes() -> Vec<Attribute> {
    [
        ("specversion", "1.0"),
        ("id", "019bf5f2-d000-7007-8707-070707070707"),
        ("source", "/sources/stripe-main"),
        ("type", "invoice.paid"),
        ("time", "2026-02-03T04:05:06Z"),
        ("dataschema", "urn:hookstead:schema:stripe-main:1"),
        ("recordedtime", "2026-02-03T04:05:07.123456Z"),
        ("hooksteadtenant", "acmé"),
        ("causationid", "019bf5f2-d000-7007-8707-070707070708"),
    ]
    .map(|(name, value)| Attribute {
        name,
        value: value.to_owned(),
    })
    .into()
}

async fn send(
    target: &impl Target,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<TargetReceipt, TargetFailure> {
    let attributes = attributes();
    let message = TargetMessage {
        attributes: &attributes,
        content_type,
        body,
    };
    target.send(&message, TIMEOUT).await
}

async fn send_json(target: &impl Target) -> Result<TargetReceipt, TargetFailure> {
    send(target, Some("application/json"), b"{\"canary\":\"CANARY\"}").await
}

/// What a target makes of calls that fail, whichever service it calls.
async fn calls_that_fail_have_their_class<T: Target>(target: impl Fn(&StandIn) -> T) {
    let expected = [
        (400, "ThrottlingException", ErrorClass::TargetThrottled),
        (429, "TooManyRequestsException", ErrorClass::TargetThrottled),
        (500, "InternalFailure", ErrorClass::TargetUnavailable),
        (503, "ServiceUnavailable", ErrorClass::TargetUnavailable),
        (403, "ExpiredTokenException", ErrorClass::TargetUnavailable),
        (403, "AccessDeniedException", ErrorClass::TargetRefused),
        (404, "ResourceNotFoundException", ErrorClass::TargetRefused),
        (400, "ValidationException", ErrorClass::TargetRefused),
    ];
    for (status, code, class) in expected {
        let server = StandIn::saying([Answer::error(status, code)]).await;
        let failure = send_json(&target(&server)).await.unwrap_err();
        assert_eq!((failure.class, failure.detail.as_str()), (class, code));
        // The schedule of the delivery repeats, not the client.
        assert_eq!(server.asked().len(), 1, "{code}");
        assert!(!format!("{failure:?} {failure}").contains("CANARY"));
    }
}

/// What a target makes of a service that is not there, or is silent.
async fn no_answer_is_told_from_a_late_one<T: Target>(target: impl Fn(&StandIn) -> T) {
    let server = StandIn::saying([Answer::HangUp]).await;
    let failure = send_json(&target(&server)).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TargetUnavailable);
    assert_eq!(failure.detail, "unreachable");
    let server = StandIn::saying([Answer::Silence]).await;
    let attributes = attributes();
    let message = TargetMessage {
        attributes: &attributes,
        content_type: None,
        body: b"{}",
    };
    let short = Duration::from_millis(50);
    let failure = target(&server).send(&message, short).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout);
    assert_eq!(failure.detail, "timeout");
}
