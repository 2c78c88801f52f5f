//! Event buses as destinations.

use hookstead_aws::targets::{EventBridgeTarget, TargetMessage, structured};
use hookstead_domain::ErrorClass;
use serde_json::{Value, json};

use super::{
    attributes, calls_that_fail_have_their_class, no_answer_is_told_from_a_late_one, send,
    send_json,
};
use crate::emulated;
use crate::stand_in::{Answer, StandIn};

#[tokio::test]
async fn an_event_of_the_bus_has_the_structured_event_as_its_detail() {
    let emulator = hookstead_testkit::aws().await;
    let queue = emulator.create_queue("bus", &[]).await;
    let arn = emulator.queue_arn(&queue).await;
    let bus = emulator.create_bus_into("bus", &arn).await;
    let aws = emulated().await;
    let body = b"{\"amount\":1.50}";
    let mut sources = Vec::new();
    for source in [None, Some("my.app".to_owned())] {
        let target = EventBridgeTarget::new(&aws, &bus, source);
        let receipt = send(&target, Some("application/json"), body).await.unwrap();
        let asked = json!({ "QueueUrl": queue });
        let answer = emulator
            .call("sqs", "AmazonSQS.ReceiveMessage", &asked)
            .await;
        let event = answer["Messages"][0]["Body"].as_str().unwrap();
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["id"], receipt.request_id);
        assert_eq!(event["detail-type"], "invoice.paid");
        let attributes = attributes();
        let expected = structured(&TargetMessage {
            attributes: &attributes,
            content_type: Some("application/json"),
            body,
        });
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(event["detail"], expected);
        sources.push(event["source"].clone());
        let receipt = &answer["Messages"][0]["ReceiptHandle"];
        let asked = json!({ "QueueUrl": queue, "ReceiptHandle": receipt });
        emulator
            .call("sqs", "AmazonSQS.DeleteMessage", &asked)
            .await;
    }
    assert_eq!(sources, ["hookstead.stripe-main", "my.app"]);
}

#[tokio::test]
async fn an_entry_that_is_refused_in_an_answer_of_200_is_a_failure() {
    let expected = [
        ("ThrottlingException", ErrorClass::TargetThrottled),
        ("InternalFailure", ErrorClass::TargetUnavailable),
        ("InternalException", ErrorClass::TargetUnavailable),
        ("NotAuthorizedForSourceException", ErrorClass::TargetRefused),
        ("MalformedDetail", ErrorClass::TargetRefused),
    ];
    for (code, class) in expected {
        let answer = json!({
            "FailedEntryCount": 1,
            "Entries": [{ "ErrorCode": code, "ErrorMessage": "CANARY" }],
        });
        let server = StandIn::saying([Answer::ok(&answer)]).await;
        let target = EventBridgeTarget::new(&server.aws(), "bus", None);
        let failure = send_json(&target).await.unwrap_err();
        assert_eq!((failure.class, failure.detail.as_str()), (class, code));
        assert!(!format!("{failure:?}").contains("CANARY"));
    }
}

#[tokio::test]
async fn an_answer_without_the_entry_does_not_count_as_taken() {
    for entries in [json!([]), json!([{}])] {
        let answer = json!({ "FailedEntryCount": 0, "Entries": entries });
        let server = StandIn::saying([Answer::ok(&answer)]).await;
        let target = EventBridgeTarget::new(&server.aws(), "bus", None);
        let failure = send_json(&target).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::TargetUnavailable);
        assert_eq!(failure.detail, "invalid_answer");
    }
}

#[tokio::test]
async fn what_eventbridge_never_takes_is_refused_before_the_call() {
    let server = StandIn::saying([]).await;
    let target = EventBridgeTarget::new(&server.aws(), "bus", None);
    let body = vec![b'1'; 1_048_576];
    let failure = send(&target, None, &body).await.unwrap_err();
    assert_eq!(failure.detail, "message_too_large");
    let mut attributes = attributes();
    attributes[3].value = "t".repeat(129);
    let message = TargetMessage {
        attributes: &attributes,
        content_type: None,
        body: b"{}",
    };
    use hookstead_aws::targets::Target as _;
    let failure = target.send(&message, super::TIMEOUT).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TargetRefused);
    assert_eq!(failure.detail, "detail_type_too_long");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn failures_of_calls_are_told_apart() {
    let target = |server: &StandIn| EventBridgeTarget::new(&server.aws(), "bus", None);
    calls_that_fail_have_their_class(target).await;
    no_answer_is_told_from_a_late_one(target).await;
}
