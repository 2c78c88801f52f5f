//! Functions as destinations. The emulator runs functions in containers, which are not
//! everywhere, so a server that answers as Lambda does stands in.

use hookstead_aws::targets::{LambdaTarget, MAX_PAYLOAD_BYTES};
use hookstead_domain::ErrorClass;

use super::{calls_that_fail_have_their_class, no_answer_is_told_from_a_late_one, send, send_json};
use crate::stand_in::{Answer, StandIn};

#[tokio::test]
async fn the_function_is_waited_for_and_gets_the_structured_event() {
    let server = StandIn::saying([Answer::With(200, Vec::new(), "null".to_owned())]).await;
    let target = LambdaTarget::new(&server.aws(), "billing:live");
    let receipt = send(&target, Some("application/json"), b"{\"amount\":1.50}")
        .await
        .unwrap();
    assert_eq!(receipt.request_id, "request-1");
    let asked = server.asked().remove(0);
    assert_eq!(
        asked.path,
        "/2015-03-31/functions/billing%3Alive/invocations"
    );
    assert_eq!(
        asked.header("x-amz-invocation-type"),
        Some("RequestResponse")
    );
    assert_eq!(asked.json()["type"], "invoice.paid");
    let text = String::from_utf8(asked.body.to_vec()).unwrap();
    assert!(text.ends_with("\"data\":{\"amount\":1.50}}"));
}

#[tokio::test]
async fn a_function_that_fails_has_not_taken_the_event_and_its_words_are_not_kept() {
    for (error, detail) in [
        ("Unhandled", "function_error_unhandled"),
        ("Handled", "function_error_handled"),
        ("SomethingNew", "function_error_unhandled"),
    ] {
        let headers = vec![("x-amz-function-error", error.to_owned())];
        let words = "{\"errorMessage\":\"CANARY\"}".to_owned();
        let server = StandIn::saying([Answer::With(200, headers, words)]).await;
        let failure = send_json(&LambdaTarget::new(&server.aws(), "f")).await;
        let failure = failure.unwrap_err();
        assert_eq!(failure.class, ErrorClass::TargetUnavailable);
        assert_eq!(failure.detail, detail);
        assert!(!format!("{failure:?} {failure}").contains("CANARY"));
    }
}

#[tokio::test]
async fn a_payload_above_lambdas_limit_is_refused_before_the_call() {
    let server = StandIn::saying([]).await;
    let body = vec![b'1'; MAX_PAYLOAD_BYTES];
    let target = LambdaTarget::new(&server.aws(), "f");
    let failure = send(&target, None, &body).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TargetRefused);
    assert_eq!(failure.detail, "message_too_large");
    assert_eq!(server.asked().len(), 0);
}

#[tokio::test]
async fn failures_of_calls_are_told_apart() {
    let target = |server: &StandIn| LambdaTarget::new(&server.aws(), "f");
    calls_that_fail_have_their_class(target).await;
    no_answer_is_told_from_a_late_one(target).await;
}
