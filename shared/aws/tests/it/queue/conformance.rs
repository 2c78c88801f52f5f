//! What every queue does, the local one as well as SQS.

use std::collections::HashSet;
use std::time::Duration;

use hookstead_aws::queue::{
    MAX_BODY_BYTES, MAX_ENTRIES, QueueDepth, ReceiveMessages, Received, SendMessages, redrive,
};

/// How long received messages stay hidden: SQS counts in seconds, and real ones pass in tests.
pub(super) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a message is received before it is a dead letter.
pub(super) const MAX_RECEIVES: u32 = 2;

/// Longer than the visibility timeout: whatever becomes visible again ends the wait.
const WAIT: Duration = Duration::from_secs(10);

/// One adapter, with a way to make queues of it.
pub(super) trait Subject {
    type Queue: SendMessages + QueueDepth + ReceiveMessages;

    /// A queue and its queue of dead letters, both empty.
    async fn queues(&self) -> (Self::Queue, Self::Queue);
}

/// The tests of the suite, over the subject that an expression gives.
macro_rules! conformance {
    ($subject:expr, $($flavour:tt)*) => {
        $crate::queue::conformance::conformance!(@each $subject, [$($flavour)*],
            what_is_sent_is_received_once_deleted_and_gone,
            what_is_not_deleted_comes_again_and_counts_its_receives,
            any_number_of_messages_is_sent_and_received_in_batches,
            out_03_one_refused_message_leaves_the_others_sent,
            bodies_are_kept_as_they_are,
            the_largest_body_is_taken_and_one_byte_more_is_refused,
            many_large_bodies_are_sent_in_several_calls,
            depth_counts_what_waits_and_not_what_is_worked_on,
            an_empty_queue_gives_nothing_after_the_wait,
            deleting_again_is_no_error,
            after_the_last_receive_a_message_is_a_dead_letter,
            dead_letters_move_back_and_start_anew,
        );
    };
    (@each $subject:expr, $flavour:tt, $($test:ident),+ $(,)?) => {
        $($crate::queue::conformance::conformance!(@one $subject, $flavour, $test);)+
    };
    (@one $subject:expr, [$($flavour:tt)*], $test:ident) => {
        #[tokio::test $($flavour)*]
        async fn $test() {
            $crate::queue::conformance::$test(&$subject).await;
        }
    };
}
pub(crate) use conformance;

pub(super) fn bodies(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("{{\"n\":{n}}}")).collect()
}

pub(super) async fn send_all(queue: &impl SendMessages, bodies: &[String]) {
    let sent = queue.send(bodies).await;
    assert_eq!(sent.len(), bodies.len());
    for one in sent {
        one.unwrap();
    }
}

/// Receives without deleting until so many are there.
async fn receive_n(queue: &impl ReceiveMessages, count: usize) -> Vec<Received> {
    let mut all = Vec::new();
    while all.len() < count {
        let batch = queue.receive(MAX_ENTRIES, WAIT).await.unwrap();
        assert!(!batch.is_empty(), "{} of {count} came", all.len());
        assert!(batch.len() <= MAX_ENTRIES);
        delete_all(queue, &batch).await;
        all.extend(batch);
    }
    all
}

async fn delete_all(queue: &impl ReceiveMessages, batch: &[Received]) {
    let receipts: Vec<String> = batch.iter().map(|one| one.receipt.clone()).collect();
    for one in queue.delete(&receipts).await {
        one.unwrap();
    }
}

async fn receive_one(queue: &impl ReceiveMessages) -> Received {
    let mut batch = queue.receive(1, WAIT).await.unwrap();
    assert_eq!(batch.len(), 1);
    batch.remove(0)
}

async fn is_empty(queue: &impl ReceiveMessages) -> bool {
    // Longer than the visibility timeout, so hidden messages count too.
    let wait = VISIBILITY_TIMEOUT * 2;
    queue.receive(1, wait).await.unwrap().is_empty()
}

pub(super) async fn what_is_sent_is_received_once_deleted_and_gone(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    send_all(&queue, &bodies(0..1)).await;
    let received = receive_one(&queue).await;
    assert_eq!(received.body, "{\"n\":0}");
    assert_eq!(received.receive_count, 1);
    delete_all(&queue, &[received]).await;
    assert!(is_empty(&queue).await);
}

pub(super) async fn what_is_not_deleted_comes_again_and_counts_its_receives(
    subject: &impl Subject,
) {
    let (queue, _) = subject.queues().await;
    send_all(&queue, &bodies(0..1)).await;
    let first = receive_one(&queue).await;
    let again = receive_one(&queue).await;
    assert_eq!(again.message_id, first.message_id);
    assert_eq!(again.body, first.body);
    assert_ne!(again.receipt, first.receipt);
    assert_eq!(again.receive_count, 2);
}

pub(super) async fn any_number_of_messages_is_sent_and_received_in_batches(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    assert!(queue.send(&[]).await.is_empty());
    let sent = bodies(0..37);
    send_all(&queue, &sent).await;
    let received = receive_n(&queue, sent.len()).await;
    // Order is not promised.
    let received: HashSet<String> = received.into_iter().map(|one| one.body).collect();
    assert_eq!(received, sent.into_iter().collect());
}

pub(super) async fn out_03_one_refused_message_leaves_the_others_sent(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    let mut sent = bodies(0..10);
    sent[3] = "x".repeat(MAX_BODY_BYTES + 1);
    sent[5] = "not XML: \u{1}".to_owned();
    sent[7] = String::new();
    let answers = queue.send(&sent).await;
    let refused: Vec<(usize, String)> = answers
        .iter()
        .enumerate()
        .filter_map(|(place, answer)| Some((place, answer.as_ref().err()?.code().to_owned())))
        .collect();
    let expected = [
        (3, "body_too_large"),
        (5, "invalid_characters"),
        (7, "empty_body"),
    ];
    assert_eq!(
        refused,
        expected.map(|(place, code)| (place, code.to_owned()))
    );
    let permanent = |place: usize| !answers[place].as_ref().unwrap_err().is_transient();
    assert!([3, 5, 7].into_iter().all(permanent));
    let received = receive_n(&queue, 7).await;
    let received: HashSet<String> = received.into_iter().map(|one| one.body).collect();
    let taken = sent.into_iter().enumerate();
    let taken = taken.filter(|(place, _)| answers[*place].is_ok());
    assert_eq!(received, taken.map(|(_, body)| body).collect());
    assert!(is_empty(&queue).await);
}

pub(super) async fn bodies_are_kept_as_they_are(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    let body = "{\"text\":\"ok 😊 café <&>\\u0000 \\\\\"}\n\ttail ".to_owned();
    send_all(&queue, std::slice::from_ref(&body)).await;
    assert_eq!(receive_one(&queue).await.body, body);
}

pub(super) async fn the_largest_body_is_taken_and_one_byte_more_is_refused(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    let largest = "x".repeat(MAX_BODY_BYTES);
    let larger = "x".repeat(MAX_BODY_BYTES + 1);
    let answers = queue.send(&[larger, largest.clone()]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().code(), "body_too_large");
    assert_eq!(answers[1], Ok(()));
    assert!(receive_one(&queue).await.body == largest);
}

pub(super) async fn many_large_bodies_are_sent_in_several_calls(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    // Four of them are more than one call may carry.
    let sent: Vec<String> = ["a", "b", "c", "d"]
        .map(|letter| letter.repeat(MAX_BODY_BYTES * 2 / 5))
        .into();
    send_all(&queue, &sent).await;
    let received = receive_n(&queue, 4).await;
    let received: HashSet<String> = received.into_iter().map(|one| one.body).collect();
    assert!(received == sent.into_iter().collect());
}

pub(super) async fn depth_counts_what_waits_and_not_what_is_worked_on(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    assert_eq!(queue.depth().await.unwrap(), 0);
    send_all(&queue, &bodies(0..12)).await;
    assert_eq!(queue.depth().await.unwrap(), 12);
    let batch = queue.receive(MAX_ENTRIES, WAIT).await.unwrap();
    let waiting = 12 - u64::try_from(batch.len()).unwrap();
    assert_eq!(queue.depth().await.unwrap(), waiting);
    delete_all(&queue, &batch).await;
    assert_eq!(queue.depth().await.unwrap(), waiting);
}

pub(super) async fn an_empty_queue_gives_nothing_after_the_wait(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    assert_eq!(queue.receive(10, Duration::ZERO).await.unwrap(), []);
    assert_eq!(queue.receive(10, Duration::from_secs(1)).await.unwrap(), []);
}

pub(super) async fn deleting_again_is_no_error(subject: &impl Subject) {
    let (queue, _) = subject.queues().await;
    assert!(queue.delete(&[]).await.is_empty());
    send_all(&queue, &bodies(0..12)).await;
    let mut receipts = Vec::new();
    while receipts.len() < 12 {
        let batch = queue.receive(MAX_ENTRIES, WAIT).await.unwrap();
        receipts.extend(batch.into_iter().map(|one| one.receipt));
    }
    for _ in 0..2 {
        let deleted = queue.delete(&receipts).await;
        assert_eq!(deleted, vec![Ok(()); 12]);
    }
    assert!(is_empty(&queue).await);
}

pub(super) async fn after_the_last_receive_a_message_is_a_dead_letter(subject: &impl Subject) {
    let (queue, dead_letters) = subject.queues().await;
    send_all(&queue, &bodies(0..1)).await;
    for count in 1..=MAX_RECEIVES {
        assert_eq!(receive_one(&queue).await.receive_count, count);
    }
    assert!(is_empty(&queue).await);
    assert_eq!(receive_one(&dead_letters).await.body, "{\"n\":0}");
}

pub(super) async fn dead_letters_move_back_and_start_anew(subject: &impl Subject) {
    let (queue, dead_letters) = subject.queues().await;
    let sent = bodies(0..3);
    send_all(&queue, &sent).await;
    for _ in 0..MAX_RECEIVES {
        let mut received = 0;
        while received < sent.len() {
            received += queue.receive(MAX_ENTRIES, WAIT).await.unwrap().len();
        }
    }
    assert!(is_empty(&queue).await);
    assert_eq!(dead_letters.depth().await.unwrap(), 3);
    assert_eq!(redrive(&dead_letters, &queue).await, Ok(3));
    assert_eq!(dead_letters.depth().await.unwrap(), 0);
    let received = receive_n(&queue, sent.len()).await;
    assert!(received.iter().all(|one| one.receive_count == 1));
    let received: HashSet<String> = received.into_iter().map(|one| one.body).collect();
    assert_eq!(received, sent.into_iter().collect());
}
