//! A batch of messages, and which of them must come again.

use std::collections::{HashMap, HashSet};

use hookstead_domain::{AttemptReason, AttemptRequest, DeliveryId, QueueMessage};

use crate::record::{BatchAnswer, QueueRecord};

/// What a batch asks for.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Each attempt that is asked for, once, with the messages that ask for it.
    pub(crate) wishes: Vec<Wish>,
    /// Dead letters whose notices came back, with the messages that say so.
    pub(crate) notices: Vec<Notice>,
    /// Messages that nobody can read.
    pub(crate) unreadable: Vec<String>,
    /// All messages, in the order in which they came.
    order: Vec<String>,
}

/// One attempt, and the messages that ask for it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) request: AttemptRequest,
    pub(crate) messages: Vec<String>,
}

/// A dead letter that is to begin anew.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) delivery_id: DeliveryId,
    pub(crate) round: u32,
    pub(crate) message: String,
}

impl Batch {
    /// Reads the messages. One that cannot be read is kept by its id alone.
    pub(crate) fn read(records: Vec<QueueRecord>) -> Self {
        let mut batch = Self::default();
        let mut places: HashMap<(DeliveryId, u32, u32), usize> = HashMap::new();
        for record in records {
            let message = record.message_id().to_owned();
            batch.order.push(message.clone());
            match QueueMessage::decode(record.body()) {
                Ok(QueueMessage::Attempt(request)) => {
                    let key = (request.delivery_id, request.round, request.attempt);
                    let place = *places.entry(key).or_insert_with(|| {
                        batch.wishes.push(Wish {
                            request,
                            messages: Vec::new(),
                        });
                        batch.wishes.len() - 1
                    });
                    batch.wishes[place].messages.push(message);
                }
                Ok(QueueMessage::DeadLetter(notice)) => batch.notices.push(Notice {
                    delivery_id: notice.delivery_id,
                    round: notice.round,
                    message,
                }),
                Err(problem) => {
                    tracing::error!(
                        message.id = message,
                        message.bytes = record.body().len(),
                        problem = %problem,
                        "a message in the queue is none of ours; it goes to the dead-letter queue"
                    );
                    batch.unreadable.push(message);
                }
            }
        }
        batch
    }

    /// Adds deliveries that began anew. No message asks for them: should this worker not
    /// get to them, they are due like any other.
    pub(crate) fn add_begun(&mut self, begun: Vec<(DeliveryId, u32)>) {
        let begun = begun.into_iter().map(|(delivery_id, round)| Wish {
            request: AttemptRequest {
                delivery_id,
                round,
                attempt: 1,
                reason: AttemptReason::Due,
            },
            messages: Vec::new(),
        });
        self.wishes.extend(begun);
    }

    /// The answer, where these messages have failed.
    pub(crate) fn answer(self, failed: HashSet<String>) -> BatchAnswer {
        let mut failed = failed;
        let order = self.order.into_iter();
        BatchAnswer {
            failures: order.filter(|message| failed.remove(message)).collect(),
        }
    }
}
