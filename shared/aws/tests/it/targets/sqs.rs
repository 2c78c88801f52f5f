//! Queues as destinations.

use hookstead_aws::targets::SqsTarget;
use hookstead_domain::ErrorClass;
use serde_json::{Value, json};

use super::{
    attributes, calls_that_fail_have_their_class, no_answer_is_told_from_a_late_one, send,
};
use crate::emulated;
use crate::stand_in::StandIn;

/// A queue of the emulator, as a destination and by its URL.
async fn queue() -> (SqsTarget, String) {
    let emulator = hookstead_testkit::aws().await;
    let url = emulator.create_queue("target", &[]).await;
    (SqsTarget::new(&emulated().await, &url), url)
}

async fn received(url: &str) -> Value {
    let asked = json!({ "QueueUrl": url, "MessageAttributeNames": ["All"] });
    let emulator = hookstead_testkit::aws().await;
    let answer = emulator
        .call("sqs", "AmazonSQS.ReceiveMessage", &asked)
        .await;
    answer["Messages"][0].clone()
}

#[tokio::test]
async fn a_text_arrives_as_it_was_received_with_the_envelope_in_attributes() {
    let (target, url) = queue().await;
    let body = b"{ \"b\":1, \"a\":2.0, \"u\":\"\\u00e9 \xc3\xa9\" }";
    let receipt = send(&target, Some("application/json"), body).await.unwrap();
    let message = received(&url).await;
    assert_eq!(message["MessageId"], receipt.request_id);
    assert_eq!(message["Body"].as_str().unwrap().as_bytes(), body);
    let sent = message["MessageAttributes"].as_object().unwrap();
    let value = |name: &str| sent[name]["StringValue"].as_str().unwrap();
    assert_eq!(value("content-type"), "application/json");
    for attribute in attributes() {
        assert_eq!(value(&attribute.header_name()), attribute.header_value());
    }
    // As many as SQS takes.
    assert_eq!(sent.len(), 10);
}

#[tokio::test]
async fn what_is_no_text_for_sqs_arrives_whole_in_structured_mode() {
    for body in [b"\xff\xfe".as_slice(), b"nul \x00", b""] {
        let (target, url) = queue().await;
        send(&target, Some("application/octet-stream"), body)
            .await
            .unwrap();
        let message = received(&url).await;
        let sent: Value = serde_json::from_str(message["Body"].as_str().unwrap()).unwrap();
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(body);
        assert_eq!(sent["data_base64"], data);
        assert_eq!(sent["type"], "invoice.paid");
        assert_eq!(
            message["MessageAttributes"]["content-type"]["StringValue"],
            "application/cloudevents+json"
        );
    }
}

#[tokio::test]
async fn what_is_too_large_with_its_attributes_is_refused_before_the_call() {
    let server = StandIn::saying([]).await;
    let target = SqsTarget::new(&server.aws(), "http://queue.test/1/q");
    let body = vec![b'x'; 1_048_576];
    let failure = send(&target, None, &body).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TargetRefused);
    assert_eq!(failure.detail, "message_too_large");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn the_largest_message_that_is_not_refused_is_taken() {
    let (target, url) = queue().await;
    let attribute_bytes: usize = attributes()
        .iter()
        .map(|one| one.header_name().len() + "String".len() + one.header_value().len())
        .sum();
    let mut body = vec![b'x'; 1_048_576 - attribute_bytes];
    send(&target, None, &body).await.unwrap();
    assert_eq!(
        received(&url).await["Body"].as_str().unwrap().len(),
        body.len()
    );
    body.push(b'x');
    send(&target, None, &body).await.unwrap_err();
}

#[tokio::test]
async fn a_queue_that_does_not_exist_is_a_refusal() {
    let target = SqsTarget::new(&emulated().await, "http://127.0.0.1/123456789012/none");
    let failure = send(&target, None, b"{}").await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TargetRefused);
}

#[tokio::test]
async fn failures_of_calls_are_told_apart() {
    let target = |server: &StandIn| SqsTarget::new(&server.aws(), "http://queue.test/1/q");
    calls_that_fail_have_their_class(target).await;
    no_answer_is_told_from_a_late_one(target).await;
}
