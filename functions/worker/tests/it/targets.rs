//! Destinations of AWS, and its queue as the worker's own, on an emulator.

use std::sync::Arc;

use hookstead_aws::Aws;
use hookstead_aws::queue::{QueueDepth as _, SendMessages as _, SqsQueue};
use hookstead_testkit::Emulator;
use hookstead_worker::destinations::AwsDestination;
use hookstead_worker::{Destinations, Worker, WorkerSettings, poller};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::world::{Consumer, World, until};

fn client(emulator: Emulator) -> Aws {
    Aws::read(|name| emulator.variable(name)).unwrap()
}

fn worker(world: &World, emulator: Emulator) -> Worker {
    let aws = client(emulator);
    let destinations = Destinations::new()
        .with("sqs", AwsDestination::sqs(aws.clone()))
        .with("eventbridge", AwsDestination::eventbridge(aws.clone()))
        .with("lambda", AwsDestination::lambda(aws));
    Worker::new(
        world.connections(2),
        destinations,
        WorkerSettings::named("test"),
    )
}

/// The body of the only message of a queue.
async fn received(emulator: Emulator, queue_url: &str) -> String {
    let asked = json!({"QueueUrl": queue_url, "WaitTimeSeconds": 10});
    let answer = emulator
        .call("sqs", "AmazonSQS.ReceiveMessage", &asked)
        .await;
    answer["Messages"][0]["Body"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_event_goes_to_a_queue() {
    let (world, emulator) = (World::new().await, hookstead_testkit::aws().await);
    let queue_url = emulator.create_queue("target", &[]).await;
    world
        .subscribe(
            "queue",
            json!({"kind": "sqs", "queue_url": queue_url}),
            json!({}),
        )
        .await;
    world.event(br#"{"n": 1.0}"#).await;
    world.work(&worker(&world, emulator)).await;
    let row = world.only().await;
    assert_eq!(
        row.state,
        "succeeded",
        "{:?}",
        world.attempts(row.delivery_id).await
    );
    assert_eq!(received(emulator, &queue_url).await, r#"{"n": 1.0}"#);
    let attempt = world.attempts(row.delivery_id).await.remove(0);
    assert!(attempt.partner_request_id.is_some() && attempt.latency_ms.is_some());
}

#[tokio::test]
async fn an_event_goes_to_a_bus() {
    let (world, emulator) = (World::new().await, hookstead_testkit::aws().await);
    let queue_url = emulator.create_queue("behind-a-bus", &[]).await;
    let arn = emulator.queue_arn(&queue_url).await;
    let bus = emulator.create_bus_into("bus", &arn).await;
    world
        .subscribe("bus", json!({"kind": "eventbridge", "bus": bus}), json!({}))
        .await;
    world.event(br#"{"n":1}"#).await;
    world.work(&worker(&world, emulator)).await;
    let row = world.only().await;
    assert_eq!(
        row.state,
        "succeeded",
        "{:?}",
        world.attempts(row.delivery_id).await
    );
    let event: Value = serde_json::from_str(&received(emulator, &queue_url).await).unwrap();
    assert_eq!(event["detail-type"], "invoice.paid");
}

#[tokio::test]
async fn a_target_that_is_not_there_or_not_readable_is_a_failure_of_its_delivery() {
    let (world, emulator) = (World::new().await, hookstead_testkit::aws().await);
    let missing = format!("{}/123456789012/no-such-queue", emulator.endpoint());
    for (name, destination) in [
        ("missing", json!({"kind": "sqs", "queue_url": missing})),
        ("unreadable-a", json!({"kind": "sqs"})),
        ("unreadable-b", json!({"kind": "eventbridge", "bus": 1})),
        ("unreadable-c", json!({"kind": "lambda"})),
    ] {
        world.subscribe(name, destination, json!({})).await;
    }
    world.event(b"{}").await;
    world.work(&worker(&world, emulator)).await;
    let mut classes: Vec<_> = world
        .live()
        .await
        .into_iter()
        .map(|row| row.last_error_class.unwrap())
        .collect();
    classes.sort();
    let invalid = "invalid_destination";
    assert_eq!(classes, [invalid, invalid, invalid, "target_refused"]);
}

#[tokio::test]
async fn a_poller_works_off_a_queue_of_sqs_and_leaves_what_failed() {
    let (world, emulator) = (World::new().await, hookstead_testkit::aws().await);
    let consumer = Consumer::answering(200).await;
    world.subscribe_http("shop", &consumer).await;
    for _ in 0..12 {
        world.event(b"{}").await;
    }
    let hidden = ("VisibilityTimeout", "3600".to_owned());
    let queue_url = emulator.create_queue("deliveries", &[hidden]).await;
    let queue = Arc::new(SqsQueue::new(&client(emulator), queue_url.as_str()));
    let messages = world.messages().await;
    let mut bodies: Vec<String> = messages.iter().map(|one| one.body().to_owned()).collect();
    bodies.push("none of ours".to_owned());
    for sent in queue.send(&bodies).await {
        sent.unwrap();
    }
    let (stop, stopped) = watch::channel(false);
    let polling = tokio::spawn(poller::run(world.worker(), Arc::clone(&queue), 2, stopped));
    until(|| async { world.ended("succeeded").await == 12 }).await;
    // All that could be received is; the one that failed was not deleted.
    until(|| async { queue.depth().await.unwrap() == 0 }).await;
    stop.send_replace(true);
    polling.await.unwrap();
    let counter = "ApproximateNumberOfMessagesNotVisible";
    let asked = json!({"QueueUrl": queue_url, "AttributeNames": [counter]});
    let answer = emulator
        .call("sqs", "AmazonSQS.GetQueueAttributes", &asked)
        .await;
    assert_eq!(answer["Attributes"][counter], "1");
    assert_eq!(consumer.requests().len(), 12);
}
