//! SQS.

mod moves;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName,
    QueueAttributeName, SendMessageBatchRequestEntry,
};
use futures::StreamExt as _;

use super::limits::{self, MAX_ENTRIES, MAX_WAIT};
use super::{
    QueueDepth, QueueError, QueueFuture, ReceiveMessages, Received, SendMessages, SendRefused,
};
use crate::Aws;
use crate::call::{CallFailure, FailureKind};
use crate::client::timeouts;

pub use self::moves::{MoveState, MoveTask};

/// Calls of one send or delete that are under way at a time: enough to hide the round
/// trips of a relay's batch, few enough that one function does not open many connections.
const CONCURRENT_CALLS: usize = 8;

/// How much longer than its wait a receive may take: as long as any call.
const RECEIVE_MARGIN: Duration = Duration::from_secs(5);

/// A queue of SQS, by its URL. A standard queue; FIFO queues are not for messages that
/// are hints.
#[derive(Clone)]
pub struct SqsQueue {
    client: Client,
    url: String,
}

impl SqsQueue {
    /// The queue of this URL. Nothing is called yet.
    #[must_use]
    pub fn new(aws: &Aws, url: impl Into<String>) -> Self {
        Self {
            client: Client::new(aws.config()),
            url: url.into(),
        }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    async fn attribute(&self, name: QueueAttributeName) -> Result<String, QueueError> {
        let call = self
            .client
            .get_queue_attributes()
            .queue_url(&self.url)
            .attribute_names(name.clone());
        let answer = call.send().await.map_err(|error| failed(&error))?;
        let value = answer.attributes().and_then(|all| all.get(&name));
        value.cloned().ok_or_else(invalid_answer)
    }

    async fn send_all(&self, bodies: &[String]) -> Vec<Result<(), SendRefused>> {
        let mut answers: Vec<_> = bodies.iter().map(|body| limits::check(body)).collect();
        let taken = bodies.iter().enumerate();
        let taken = taken.filter(|(place, _)| answers[*place].is_ok());
        let calls = limits::calls(taken.map(|(place, body)| (place, body.len())));
        let calls: Vec<_> = calls
            .into_iter()
            .map(|places| self.send_call(bodies, places))
            .collect();
        let mut calls = futures::stream::iter(calls).buffer_unordered(CONCURRENT_CALLS);
        while let Some(call) = calls.next().await {
            for (place, answer) in call {
                answers[place] = answer.map_err(SendRefused::from);
            }
        }
        answers
    }

    /// One call. `places` are those of its messages in `bodies`.
    async fn send_call(&self, bodies: &[String], places: Vec<usize>) -> Vec<Answer> {
        let entries = places.iter().map(|place| {
            SendMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .message_body(&bodies[*place])
                .build()
                .expect("an id and a body are all that an entry needs")
        });
        let call = self
            .client
            .send_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries.collect()));
        match call.send().await {
            Ok(answer) => {
                let successful = answer.successful().iter().map(|entry| entry.id());
                answered(places, successful, answer.failed())
            }
            Err(error) => all_failed(places, &failed(&error)),
        }
    }

    async fn receive_within(
        &self,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Received>, QueueError> {
        let max = max.clamp(1, MAX_ENTRIES);
        let wait = wait.min(MAX_WAIT);
        // SQS counts whole seconds. Rounding down would make a short wait none at all.
        let wait_s = wait.as_millis().div_ceil(1000);
        let limit = timeouts(wait + RECEIVE_MARGIN, wait + RECEIVE_MARGIN * 2);
        let call = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(max).unwrap_or(1))
            .wait_time_seconds(i32::try_from(wait_s).unwrap_or(0))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .customize()
            .config_override(aws_sdk_sqs::config::Builder::new().timeout_config(limit));
        let answer = call.send().await.map_err(|error| failed(&error))?;
        let messages = answer.messages.unwrap_or_default();
        Ok(messages.into_iter().filter_map(received).collect())
    }

    async fn delete_all(&self, receipts: &[String]) -> Vec<Result<(), QueueError>> {
        let places: Vec<usize> = (0..receipts.len()).collect();
        let calls: Vec<_> = places
            .chunks(MAX_ENTRIES)
            .map(|places| self.delete_call(receipts, places.to_vec()))
            .collect();
        let mut answers = vec![Ok(()); receipts.len()];
        let mut calls = futures::stream::iter(calls).buffer_unordered(CONCURRENT_CALLS);
        while let Some(call) = calls.next().await {
            for (place, answer) in call {
                answers[place] = answer;
            }
        }
        answers
    }

    async fn delete_call(&self, receipts: &[String], places: Vec<usize>) -> Vec<Answer> {
        let entries = places.iter().map(|place| {
            DeleteMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .receipt_handle(&receipts[*place])
                .build()
                .expect("an id and a receipt are all that an entry needs")
        });
        let call = self
            .client
            .delete_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries.collect()));
        match call.send().await {
            Ok(answer) => {
                let successful = answer.successful().iter().map(|entry| entry.id());
                answered(places, successful, answer.failed())
            }
            Err(error) => all_failed(places, &failed(&error)),
        }
    }
}

/// What became of the message at a place.
type Answer = (usize, Result<(), QueueError>);

/// What a batch call's answer says of each of its messages. Only what it names as
/// successful is: a message in neither list is not.
fn answered<'a>(
    places: Vec<usize>,
    successful: impl Iterator<Item = &'a str>,
    failed: &[BatchResultErrorEntry],
) -> Vec<Answer> {
    let mut said: HashMap<&str, Result<(), QueueError>> =
        successful.map(|id| (id, Ok(()))).collect();
    for entry in failed {
        let kind = FailureKind::of_code(entry.code(), !entry.sender_fault());
        said.insert(
            entry.id(),
            Err(queue_error(kind, entry.code().to_owned(), None)),
        );
    }
    let each = places.into_iter().map(|place| {
        let said = said.remove(place.to_string().as_str());
        (place, said.unwrap_or_else(|| Err(invalid_answer())))
    });
    each.collect()
}

fn all_failed(places: Vec<usize>, error: &QueueError) -> Vec<Answer> {
    let each = places.into_iter().map(|place| (place, Err(error.clone())));
    each.collect()
}

fn received(message: Message) -> Option<Received> {
    let count = message
        .attributes()
        .and_then(|all| all.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    Some(Received {
        message_id: message.message_id?,
        receipt: message.receipt_handle?,
        body: message.body?,
        receive_count: count.unwrap_or(1),
    })
}

fn failed<E>(
    error: &aws_sdk_sqs::error::SdkError<
        E,
        aws_smithy_runtime_api::client::orchestrator::HttpResponse,
    >,
) -> QueueError
where
    E: aws_sdk_sqs::error::ProvideErrorMetadata + std::error::Error + 'static,
{
    let CallFailure { kind, code, cause } = CallFailure::of(error);
    queue_error(kind, code, cause)
}

fn queue_error(kind: FailureKind, code: String, cause: Option<crate::Cause>) -> QueueError {
    if kind.is_transient() {
        QueueError::Transient { code, cause }
    } else {
        QueueError::Permanent { code, cause }
    }
}

fn invalid_answer() -> QueueError {
    queue_error(FailureKind::Unavailable, "invalid_answer".to_owned(), None)
}

impl SendMessages for SqsQueue {
    fn send<'a>(&'a self, bodies: &'a [String]) -> QueueFuture<'a, Vec<Result<(), SendRefused>>> {
        Box::pin(self.send_all(bodies))
    }
}

impl QueueDepth for SqsQueue {
    fn depth(&self) -> QueueFuture<'_, Result<u64, QueueError>> {
        Box::pin(async {
            let depth = self
                .attribute(QueueAttributeName::ApproximateNumberOfMessages)
                .await?;
            depth.parse().map_err(|_| invalid_answer())
        })
    }
}

impl ReceiveMessages for SqsQueue {
    fn receive(
        &self,
        max: usize,
        wait: Duration,
    ) -> QueueFuture<'_, Result<Vec<Received>, QueueError>> {
        Box::pin(self.receive_within(max, wait))
    }

    fn delete<'a>(
        &'a self,
        receipts: &'a [String],
    ) -> QueueFuture<'a, Vec<Result<(), QueueError>>> {
        Box::pin(self.delete_all(receipts))
    }
}

impl fmt::Debug for SqsQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsQueue")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
