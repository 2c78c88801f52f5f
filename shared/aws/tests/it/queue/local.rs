//! The queue inside the process.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::{
    LocalQueue, MAX_HELD_BYTES, QueueDepth as _, ReceiveMessages as _, RedriveError,
    SendMessages as _, redrive,
};
use tokio::time::Instant;

use super::conformance::{
    MAX_RECEIVES, Subject, VISIBILITY_TIMEOUT, bodies, conformance, send_all,
};

struct Local;

impl Subject for Local {
    type Queue = Arc<LocalQueue>;

    async fn queues(&self) -> (Self::Queue, Self::Queue) {
        let dead_letters = Arc::new(LocalQueue::new(VISIBILITY_TIMEOUT));
        let queue = LocalQueue::new(VISIBILITY_TIMEOUT)
            .with_dead_letters(Arc::clone(&dead_letters), MAX_RECEIVES);
        (Arc::new(queue), dead_letters)
    }
}

conformance!(Local, (start_paused = true));

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_send_wakes_the_waiting_receiver_at_once() {
    let queue = Arc::new(LocalQueue::new(MINUTE));
    let start = Instant::now();
    let waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.receive(10, Duration::from_secs(20)).await.unwrap() }
    });
    tokio::task::yield_now().await;
    send_all(&queue, &bodies(0..2)).await;
    assert_eq!(waiting.await.unwrap().len(), 2);
    // The paused clock moves only where everybody waits for it.
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_message_comes_again_exactly_when_its_visibility_timeout_has_passed() {
    let queue = LocalQueue::new(MINUTE);
    send_all(&queue, &bodies(0..1)).await;
    queue.receive(1, Duration::ZERO).await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(queue.receive(1, Duration::ZERO).await.unwrap(), []);
    let start = Instant::now();
    let again = queue.receive(1, Duration::from_secs(20)).await.unwrap();
    assert_eq!(again[0].receive_count, 2);
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn an_old_receipt_does_not_delete_what_somebody_else_works_on() {
    let queue = LocalQueue::new(MINUTE);
    send_all(&queue, &bodies(0..1)).await;
    let old = queue.receive(1, Duration::ZERO).await.unwrap();
    tokio::time::advance(MINUTE).await;
    let new = queue.receive(1, Duration::ZERO).await.unwrap();
    queue.delete(&[old[0].receipt.clone()]).await;
    tokio::time::advance(MINUTE).await;
    assert_eq!(queue.depth().await, Ok(1));
    queue.delete(&[new[0].receipt.clone()]).await;
    assert_eq!(queue.depth().await, Ok(0));
}

#[tokio::test]
async fn what_is_no_receipt_is_an_error_of_its_own() {
    let queue = LocalQueue::new(MINUTE);
    let deleted = queue.delete(&["no-receipt".to_owned()]).await;
    let error = deleted[0].as_ref().unwrap_err();
    assert_eq!(error.code(), "invalid_receipt");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_full_queue_refuses_for_the_time_being_and_takes_again_when_emptied() {
    let queue = LocalQueue::new(MINUTE);
    let megabyte = "x".repeat(1024 * 1024 - 128);
    let full = vec![megabyte.clone(); MAX_HELD_BYTES / (1024 * 1024)];
    send_all(&queue, &full).await;
    let answers = queue.send(std::slice::from_ref(&megabyte)).await;
    let refused = answers[0].as_ref().unwrap_err();
    assert_eq!(refused.code(), "queue_full");
    assert!(refused.is_transient());
    let received = queue.receive(1, Duration::ZERO).await.unwrap();
    queue.delete(&[received[0].receipt.clone()]).await;
    send_all(&queue, &[megabyte]).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_finds_no_room_stays() {
    let dead_letters = Arc::new(LocalQueue::new(MINUTE));
    send_all(
        &dead_letters,
        &vec!["x".repeat(1024 * 1024 - 128); MAX_HELD_BYTES / (1024 * 1024)],
    )
    .await;
    let queue = LocalQueue::new(MINUTE).with_dead_letters(Arc::clone(&dead_letters), 1);
    send_all(&queue, &bodies(0..1)).await;
    queue.receive(1, Duration::ZERO).await.unwrap();
    tokio::time::advance(MINUTE).await;
    assert_eq!(queue.receive(1, Duration::ZERO).await.unwrap(), []);
    assert_eq!(queue.depth().await, Ok(1));
    assert_eq!(
        dead_letters.move_all_to(&queue),
        MAX_HELD_BYTES / (1024 * 1024) - 1
    );
    assert_eq!(dead_letters.depth().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn several_receivers_share_the_messages_and_none_gets_one_twice() {
    let queue = Arc::new(LocalQueue::new(MINUTE));
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut got = Vec::new();
                loop {
                    let batch = queue.receive(3, Duration::from_secs(1)).await.unwrap();
                    if batch.is_empty() {
                        return got;
                    }
                    got.extend(batch.into_iter().map(|one| one.message_id));
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    send_all(&queue, &bodies(0..100)).await;
    let mut all = Vec::new();
    for receiver in receivers {
        all.extend(receiver.await.unwrap());
    }
    all.sort();
    let count = all.len();
    all.dedup();
    assert_eq!((count, all.len()), (100, 100));
}

#[tokio::test]
async fn moving_a_full_queue_at_once_makes_its_messages_new_ones() {
    let from = LocalQueue::new(MINUTE);
    let to = LocalQueue::new(MINUTE);
    send_all(&from, &bodies(0..25)).await;
    from.receive(5, Duration::ZERO).await.unwrap();
    // Those being worked on stay.
    assert_eq!(from.move_all_to(&to), 20);
    assert_eq!((from.depth().await, to.depth().await), (Ok(0), Ok(20)));
    let moved = to.receive(10, Duration::ZERO).await.unwrap();
    assert!(moved.iter().all(|one| one.receive_count == 1));
}

#[tokio::test]
async fn what_the_other_queue_refuses_stays_where_it_was() {
    let full = LocalQueue::new(MINUTE);
    let megabyte = "x".repeat(1024 * 1024 - 128);
    send_all(&full, &vec![megabyte; MAX_HELD_BYTES / (1024 * 1024)]).await;
    let from = LocalQueue::new(Duration::ZERO);
    send_all(&from, &bodies(0..3)).await;
    let error = redrive(&from, &full).await.unwrap_err();
    assert!(matches!(&error, RedriveError::Send(refused) if refused.is_transient()));
    assert_eq!(from.depth().await, Ok(3));
}

#[tokio::test]
async fn no_body_shows_in_debug() {
    let queue = LocalQueue::new(MINUTE);
    send_all(&queue, &["CANARY".to_owned()]).await;
    let received = queue.receive(1, Duration::ZERO).await.unwrap();
    assert!(!format!("{queue:?} {received:?}").contains("CANARY"));
}
