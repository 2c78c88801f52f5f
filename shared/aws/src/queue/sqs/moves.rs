//! Moving messages from one queue of SQS to another: what redrives dead letters.

use aws_sdk_sqs::types::QueueAttributeName;

use super::{SqsQueue, failed, invalid_answer};
use crate::queue::QueueError;

/// The most that SQS moves per second.
const MAX_PER_SECOND: u32 = 500;

/// How many moves SQS lists at most.
const LISTED: i32 = 10;

/// One move, as SQS knows it. Its numbers are SQS's estimates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveTask {
    /// What names it while it runs; SQS gives none for a finished one.
    pub handle: Option<String>,
    /// Where it stands.
    pub state: MoveState,
    /// Messages moved so far.
    pub moved: u64,
    /// Messages that waited when it began, where SQS says so.
    pub to_move: Option<u64>,
}

/// Where a move stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveState {
    /// At work.
    Running,
    /// All moved.
    Completed,
    /// Being ended.
    Cancelling,
    /// Ended before all was moved.
    Cancelled,
    /// Failed, or in a state that is not known here.
    Failed,
}

impl SqsQueue {
    /// Starts to move all messages of this queue of dead letters: to `target`, or to
    /// where they came from; at most `per_second`, up to 500, or as fast as SQS can.
    /// Gives the handle of the move, which goes on by itself. One runs per queue.
    ///
    /// A moved message is a new one: another id, counted anew, retained anew. The caller
    /// needs, besides this right, those to receive and delete here and to send there.
    ///
    /// # Errors
    /// Where SQS refuses or cannot be asked.
    pub async fn start_move(
        &self,
        target: Option<&Self>,
        per_second: Option<u32>,
    ) -> Result<String, QueueError> {
        let source = self.arn().await?;
        let target = match target {
            Some(target) => Some(target.arn().await?),
            None => None,
        };
        let per_second = per_second.map(|rate| rate.clamp(1, MAX_PER_SECOND));
        let call = self
            .client
            .start_message_move_task()
            .source_arn(source)
            .set_destination_arn(target)
            .set_max_number_of_messages_per_second(per_second.map(u32::cast_signed));
        let answer = call.send().await.map_err(|error| failed(&error))?;
        answer.task_handle.ok_or_else(invalid_answer)
    }

    /// The last moves from this queue, newest first.
    ///
    /// # Errors
    /// Where SQS refuses or cannot be asked.
    pub async fn moves(&self) -> Result<Vec<MoveTask>, QueueError> {
        let call = self
            .client
            .list_message_move_tasks()
            .source_arn(self.arn().await?)
            .max_results(LISTED);
        let answer = call.send().await.map_err(|error| failed(&error))?;
        let tasks = answer.results().iter().map(|task| MoveTask {
            handle: task.task_handle().map(str::to_owned),
            state: state(task.status().unwrap_or_default()),
            moved: u64::try_from(task.approximate_number_of_messages_moved()).unwrap_or(0),
            to_move: task
                .approximate_number_of_messages_to_move()
                .and_then(|count| u64::try_from(count).ok()),
        });
        Ok(tasks.collect())
    }

    /// Ends a move; what is moved stays moved. Gives how much that was.
    ///
    /// # Errors
    /// Where SQS refuses, because the move is over, or cannot be asked.
    pub async fn cancel_move(&self, handle: &str) -> Result<u64, QueueError> {
        let call = self.client.cancel_message_move_task().task_handle(handle);
        let answer = call.send().await.map_err(|error| failed(&error))?;
        Ok(u64::try_from(answer.approximate_number_of_messages_moved()).unwrap_or(0))
    }

    async fn arn(&self) -> Result<String, QueueError> {
        self.attribute(QueueAttributeName::QueueArn).await
    }
}

fn state(text: &str) -> MoveState {
    match text {
        "RUNNING" => MoveState::Running,
        "COMPLETED" => MoveState::Completed,
        "CANCELLING" => MoveState::Cancelling,
        "CANCELLED" => MoveState::Cancelled,
        _ => MoveState::Failed,
    }
}
