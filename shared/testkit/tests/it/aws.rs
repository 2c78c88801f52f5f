//! The emulator of AWS.

use hookstead_testkit::aws;
use serde_json::json;

#[tokio::test]
async fn a_queue_of_the_emulator_takes_a_message_and_gives_it_back() {
    let emulator = aws().await;
    let (queue, dead) = emulator
        .create_queue_with_dead_letters("testkit", 2, 30)
        .await;
    assert_ne!(queue, dead);
    let sent = json!({ "QueueUrl": queue, "MessageBody": "hello" });
    emulator.call("sqs", "AmazonSQS.SendMessage", &sent).await;
    let asked = json!({ "QueueUrl": queue });
    let answer = emulator
        .call("sqs", "AmazonSQS.ReceiveMessage", &asked)
        .await;
    assert_eq!(answer.pointer("/Messages/0/Body"), Some(&json!("hello")));
}

#[tokio::test]
async fn two_queues_asked_for_by_one_name_are_two() {
    let emulator = aws().await;
    let first = emulator.create_queue("same", &[]).await;
    assert_ne!(first, emulator.create_queue("same", &[]).await);
}
