//! SQS.

use std::time::Duration;

use hookstead_aws::queue::{
    MoveState, MoveTask, QueueDepth as _, QueueError, ReceiveMessages as _, SendMessages as _,
    SqsQueue,
};
use serde_json::json;

use super::conformance::{MAX_RECEIVES, Subject, VISIBILITY_TIMEOUT, bodies, conformance};
use crate::emulated;
use crate::stand_in::{Answer, Asked, StandIn};

struct Sqs;

impl Subject for Sqs {
    type Queue = SqsQueue;

    async fn queues(&self) -> (SqsQueue, SqsQueue) {
        let emulator = hookstead_testkit::aws().await;
        let timeout_s = u32::try_from(VISIBILITY_TIMEOUT.as_secs()).unwrap();
        let (queue, dead) = emulator
            .create_queue_with_dead_letters("conformance", MAX_RECEIVES, timeout_s)
            .await;
        let aws = emulated().await;
        (SqsQueue::new(&aws, queue), SqsQueue::new(&aws, dead))
    }
}

conformance!(Sqs,);

/// A server that accepts every message of a batch but those whose place in it is refused.
async fn refusing(refused: fn(usize) -> Option<(&'static str, bool)>) -> StandIn {
    StandIn::answering(move |asked: &Asked| {
        let asked = asked.json();
        let mut successful = Vec::new();
        let mut failed = Vec::new();
        for (place, entry) in asked["Entries"].as_array().unwrap().iter().enumerate() {
            let id = &entry["Id"];
            match refused(place) {
                Some((code, sender_fault)) => {
                    failed.push(json!({ "Id": id, "Code": code, "SenderFault": sender_fault }));
                }
                None => successful.push(json!({
                    "Id": id, "MessageId": "m", "MD5OfMessageBody": md5_of(entry),
                })),
            }
        }
        Answer::ok(&json!({ "Successful": successful, "Failed": failed }))
    })
    .await
}

/// Not checked by the client; it has to be there.
fn md5_of(_: &serde_json::Value) -> &'static str {
    "00000000000000000000000000000000"
}

#[tokio::test]
async fn out_03_of_a_batch_answered_200_exactly_the_refused_messages_are_refused() {
    let server = refusing(|place| (place == 4).then_some(("RequestThrottled", true))).await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    let answers = queue.send(&bodies(0..10)).await;
    for (place, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), place == 4, "{place}");
    }
    let refused = answers[4].as_ref().unwrap_err();
    assert_eq!(refused.code(), "RequestThrottled");
    assert!(refused.is_transient());
}

#[tokio::test]
async fn a_refusal_by_fault_of_the_message_is_for_good_and_one_by_fault_of_sqs_is_not() {
    let server = refusing(|place| match place {
        0 => Some(("InvalidMessageContents", true)),
        1 => Some(("InternalError", false)),
        2 => Some(("SomethingNew", false)),
        _ => None,
    })
    .await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    let answers = queue.send(&bodies(0..4)).await;
    let transient = answers
        .iter()
        .map(|answer| answer.as_ref().err().map(|error| error.is_transient()));
    let expected = [Some(false), Some(true), Some(true), None];
    assert_eq!(transient.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_message_that_the_answer_does_not_name_does_not_count_as_sent() {
    let server = StandIn::saying([Answer::ok(&json!({ "Successful": [], "Failed": [] }))]).await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    let answers = queue.send(&bodies(0..2)).await;
    for answer in answers {
        let refused = answer.unwrap_err();
        assert_eq!(refused.code(), "invalid_answer");
        assert!(refused.is_transient());
    }
}

#[tokio::test]
async fn a_call_that_fails_is_the_failure_of_each_of_its_messages_and_of_no_other() {
    let server = StandIn::answering(|asked: &Asked| {
        let entries = asked.json()["Entries"].as_array().unwrap().clone();
        if entries[0]["MessageBody"] == "{\"n\":10}" {
            return Answer::error(400, "com.amazonaws.sqs#AccessDeniedException");
        }
        let successful = entries.iter().map(|entry| {
            json!({ "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": md5_of(entry) })
        });
        Answer::ok(&json!({ "Successful": successful.collect::<Vec<_>>(), "Failed": [] }))
    })
    .await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    let answers = queue.send(&bodies(0..25)).await;
    for (place, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_err(), (10..20).contains(&place), "{place}");
    }
    let refused = answers[10].as_ref().unwrap_err();
    assert_eq!(refused.code(), "AccessDeniedException");
    assert!(!refused.is_transient());
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_within_the_call() {
    let server = StandIn::saying([
        Answer::HangUp,
        Answer::error(503, "ServiceUnavailable"),
        Answer::ok(&json!({ "Attributes": { "ApproximateNumberOfMessages": "7" } })),
    ])
    .await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    assert_eq!(queue.depth().await, Ok(7));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_queue_that_is_missing_is_a_permanent_error_and_one_that_is_unreachable_is_not() {
    let aws = emulated().await;
    let missing = SqsQueue::new(&aws, "http://127.0.0.1/123456789012/no-such-queue");
    for error in [
        missing.depth().await.unwrap_err(),
        missing.receive(1, Duration::ZERO).await.unwrap_err(),
    ] {
        assert!(matches!(error, QueueError::Permanent { .. }), "{error:?}");
        assert!(error.code().contains("NonExistentQueue") || error.code() == "QueueDoesNotExist");
    }
    let gone = StandIn::saying([Answer::HangUp]).await.aws();
    let unreachable = SqsQueue::new(&gone, "http://queue.test/1/q");
    let error = unreachable.depth().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(error.code(), "unreachable");
}

#[tokio::test]
async fn the_wait_of_a_receive_reaches_sqs_in_whole_seconds() {
    let server = StandIn::saying([Answer::ok(&json!({}))]).await;
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/q");
    for (wait_ms, seconds) in [(0, 0), (200, 1), (1000, 1), (20_000, 20), (90_000, 20)] {
        let wait = Duration::from_millis(wait_ms);
        assert_eq!(queue.receive(99, wait).await.unwrap(), []);
        let asked = server.asked().pop().unwrap().json();
        assert_eq!(asked["WaitTimeSeconds"], seconds);
        assert_eq!(asked["MaxNumberOfMessages"], 10);
    }
}

/// SQS as far as moves go: the emulator has none.
async fn moving() -> StandIn {
    StandIn::answering(|asked: &Asked| {
        let operation = asked.header("x-amz-target").unwrap().to_owned();
        let asked = asked.json();
        match operation.strip_prefix("AmazonSQS.").unwrap() {
            "GetQueueAttributes" => {
                let name = asked["QueueUrl"]
                    .as_str()
                    .unwrap()
                    .rsplit('/')
                    .next()
                    .unwrap();
                let arn = format!("arn:aws:sqs:us-east-1:1:{name}");
                Answer::ok(&json!({ "Attributes": { "QueueArn": arn } }))
            }
            "StartMessageMoveTask" => {
                assert_eq!(asked["SourceArn"], "arn:aws:sqs:us-east-1:1:dead");
                if asked["DestinationArn"].is_null() {
                    return Answer::error(400, "com.amazonaws.sqs#UnsupportedOperation");
                }
                assert_eq!(asked["DestinationArn"], "arn:aws:sqs:us-east-1:1:queue");
                assert_eq!(asked["MaxNumberOfMessagesPerSecond"], 500);
                Answer::ok(&json!({ "TaskHandle": "handle-1" }))
            }
            "ListMessageMoveTasks" => Answer::ok(&json!({ "Results": [
                {
                    "TaskHandle": "handle-1", "Status": "RUNNING",
                    "ApproximateNumberOfMessagesMoved": 2,
                    "ApproximateNumberOfMessagesToMove": 5,
                },
                { "Status": "FAILED", "ApproximateNumberOfMessagesMoved": 0 },
            ] })),
            "CancelMessageMoveTask" => {
                assert_eq!(asked["TaskHandle"], "handle-1");
                Answer::ok(&json!({ "ApproximateNumberOfMessagesMoved": 3 }))
            }
            other => panic!("{other} is not expected"),
        }
    })
    .await
}

#[tokio::test]
async fn a_move_is_started_watched_and_ended() {
    let server = moving().await;
    let dead = SqsQueue::new(&server.aws(), "http://queue.test/1/dead");
    let queue = SqsQueue::new(&server.aws(), "http://queue.test/1/queue");
    // More than SQS can is as much as it can.
    let handle = dead.start_move(Some(&queue), Some(9000)).await.unwrap();
    let running = MoveTask {
        handle: Some(handle.clone()),
        state: MoveState::Running,
        moved: 2,
        to_move: Some(5),
    };
    let failed = MoveTask {
        handle: None,
        state: MoveState::Failed,
        moved: 0,
        to_move: None,
    };
    assert_eq!(dead.moves().await.unwrap(), [running, failed]);
    assert_eq!(dead.cancel_move(&handle).await, Ok(3));
}

#[tokio::test]
async fn a_move_that_sqs_refuses_is_a_permanent_error() {
    let server = moving().await;
    let dead = SqsQueue::new(&server.aws(), "http://queue.test/1/dead");
    let error = dead.start_move(None, None).await.unwrap_err();
    assert_eq!(error.code(), "UnsupportedOperation");
    assert!(!error.is_transient());
}
