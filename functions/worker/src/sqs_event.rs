//! The event of Lambda's event source mapping, and the answer to it.

use hookstead_domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{BatchAnswer, MissingMessageId, QueueRecord};

/// A batch as SQS hands it to a Lambda function. Fields that the worker does not use
/// are skipped.
#[derive(Deserialize)]
pub struct SqsEvent {
    #[serde(rename = "Records", default)]
    records: Vec<SqsRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SqsRecord {
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    body: Option<String>,
}

/// The answer: which messages must come again. Everything that it does not name is
/// deleted from the queue.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsAnswer {
    batch_item_failures: Vec<ItemFailure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemFailure {
    item_identifier: String,
}

impl SqsEvent {
    /// The messages.
    ///
    /// # Errors
    ///
    /// Where one has no id: the invocation has to fail as a whole then, because an
    /// answer could neither name that message nor leave it out.
    pub fn into_records(self) -> Result<Vec<QueueRecord>, MissingMessageId> {
        let records = self.records.into_iter();
        records
            .map(|record| {
                QueueRecord::new(
                    record.message_id.unwrap_or_default(),
                    record.body.unwrap_or_default(),
                )
            })
            .collect()
    }
}

impl From<BatchAnswer> for SqsAnswer {
    fn from(answer: BatchAnswer) -> Self {
        let failures = answer.failures.into_iter();
        Self {
            batch_item_failures: failures
                .map(|item_identifier| ItemFailure { item_identifier })
                .collect(),
        }
    }
}

/// How long a batch may take: until the function's time is over, less a margin for the
/// answer itself.
#[must_use]
pub fn time_left(deadline: std::time::SystemTime, now: Timestamp) -> std::time::Duration {
    let left = Timestamp::from(deadline) - now;
    let left: std::time::Duration = left.try_into().unwrap_or_default();
    left.saturating_sub(ANSWER_MARGIN)
}

/// What is left of the function's time for handing in the answer.
const ANSWER_MARGIN: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    fn written(failures: &[&str]) -> String {
        let failures = failures.iter().map(|id| (*id).to_owned()).collect();
        serde_json::to_string(&SqsAnswer::from(BatchAnswer { failures })).unwrap()
    }

    fn read(event: &str) -> Result<Vec<QueueRecord>, MissingMessageId> {
        serde_json::from_str::<SqsEvent>(event)
            .unwrap()
            .into_records()
    }

    #[test]
    fn wrk_06_the_answer_has_the_exact_shape() {
        assert_eq!(written(&[]), r#"{"batchItemFailures":[]}"#);
        assert_eq!(
            written(&["a"]),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#
        );
        assert_eq!(
            written(&["a", "b"]),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b"}]}"#
        );
    }

    #[test]
    fn wrk_06_a_message_without_an_id_fails_the_invocation() {
        for record in [
            r#"{"body":"x"}"#,
            r#"{"messageId":"","body":"x"}"#,
            r#"{"messageId":null}"#,
        ] {
            let event = format!(r#"{{"Records":[{{"messageId":"a","body":"x"}},{record}]}}"#);
            assert_eq!(read(&event), Err(MissingMessageId), "{record}");
        }
    }

    #[test]
    fn fields_that_are_not_used_are_skipped() {
        let event = r#"{"Records":[{"messageId":"a","receiptHandle":"r","body":"{}",
            "attributes":{"ApproximateReceiveCount":"1"},"eventSource":"aws:sqs"}]}"#;
        let records = read(event).unwrap();
        assert_eq!(records, [QueueRecord::new("a", "{}").unwrap()]);
        assert_eq!(read("{}"), Ok(Vec::new()));
    }

    #[test]
    fn a_batch_ends_before_the_function_does() {
        let now = Timestamp::UNIX_EPOCH;
        let deadline = SystemTime::UNIX_EPOCH + Duration::from_secs(30);
        assert_eq!(time_left(deadline, now), Duration::from_secs(29));
        assert_eq!(time_left(SystemTime::UNIX_EPOCH, now), Duration::ZERO);
    }
}
