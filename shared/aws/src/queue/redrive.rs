//! Moving messages by hand: works between any two queues.

use std::time::Duration;

use super::{MAX_ENTRIES, QueueError, ReceiveMessages, SendMessages, SendRefused};

/// Why a move ended early. What was moved stays moved, the rest stays where it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedriveError {
    /// The queue moved from could not be read, or a message not deleted, which is then on both.
    #[error("messages could not be taken off their queue")]
    Receive(#[from] QueueError),
    /// The queue moved to refused a message.
    #[error("a message was not taken by the other queue")]
    Send(#[from] SendRefused),
}

/// Moves messages to another queue until none is left that can be received, and says
/// how many. A message is deleted when the other queue has taken it, so none is lost; one
/// whose deletion fails is on both. On the other queue they are new messages.
///
/// SQS does the same by itself, see [`super::SqsQueue::start_move`]; this is for queues
/// in the process, and for stand-ins of SQS that cannot.
///
/// # Errors
/// Where either queue fails; refusals of one message end the move as well.
pub async fn redrive(
    from: &dyn ReceiveMessages,
    to: &dyn SendMessages,
) -> Result<usize, RedriveError> {
    let mut moved = 0;
    loop {
        let batch = from.receive(MAX_ENTRIES, Duration::ZERO).await?;
        if batch.is_empty() {
            return Ok(moved);
        }
        let (receipts, bodies): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|message| (message.receipt, message.body))
            .unzip();
        let answers = to.send(&bodies).await;
        let taken = receipts.into_iter().zip(&answers);
        let taken: Vec<String> = taken
            .filter_map(|(receipt, answer)| answer.is_ok().then_some(receipt))
            .collect();
        for deleted in from.delete(&taken).await {
            deleted?;
            moved += 1;
        }
        for answer in answers {
            answer?;
        }
    }
}
