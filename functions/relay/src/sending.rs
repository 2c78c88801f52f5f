//! Messages to a queue, and what became of each.

use std::time::Duration;

use hookstead_aws::queue::{SendMessages, SendRefused};
use tokio::time::timeout;

/// Longest that sending a batch may take: a queue that throttles has time for its
/// client's own repetitions. What it answers later counts as refused and may then be
/// in the queue twice, which does no harm.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);

/// What became of a batch.
pub(crate) struct Sent<T> {
    pub(crate) accepted: Vec<T>,
    pub(crate) refused: Vec<T>,
    /// The first reason.
    pub(crate) reason: Option<SendRefused>,
}

/// Sends one message for each item, and sorts the items by what the queue said.
pub(crate) async fn send<T>(
    queue: &dyn SendMessages,
    items: Vec<T>,
    message: impl Fn(&T) -> String,
) -> Sent<T> {
    let bodies: Vec<String> = items.iter().map(message).collect();
    let answers = timeout(SEND_TIMEOUT, queue.send(&bodies)).await;
    let mut answers = answers.unwrap_or_default().into_iter();
    let mut sent = Sent {
        accepted: Vec::with_capacity(items.len()),
        refused: Vec::new(),
        reason: None,
    };
    for item in items {
        match answers.next().unwrap_or_else(|| Err(unanswered())) {
            Ok(()) => sent.accepted.push(item),
            Err(reason) => {
                sent.refused.push(item);
                sent.reason.get_or_insert(reason);
            }
        }
    }
    sent
}

fn unanswered() -> SendRefused {
    SendRefused::Transient {
        code: "no_answer".to_owned(),
        cause: None,
    }
}
