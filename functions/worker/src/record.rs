//! What comes in and what goes back.

use std::fmt;

/// One message of the queue.
#[derive(Clone, PartialEq, Eq)]
pub struct QueueRecord {
    message_id: String,
    body: String,
}

/// A message without an id: nobody could be told what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message has no id")]
pub struct MissingMessageId;

impl QueueRecord {
    /// A message with the queue's own id of it.
    ///
    /// # Errors
    ///
    /// When the id is empty.
    pub fn new(
        message_id: impl Into<String>,
        body: impl Into<String>,
    ) -> Result<Self, MissingMessageId> {
        let message_id = message_id.into();
        if message_id.is_empty() {
            return Err(MissingMessageId);
        }
        let body = body.into();
        Ok(Self { message_id, body })
    }

    /// The queue's id of the message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The text of the message.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }
}

/// What was in a message is not printed.
impl fmt::Debug for QueueRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueRecord")
            .field("message_id", &self.message_id)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchAnswer {
    /// The messages that must come again, by their ids, each once, in the order in
    /// which they came.
    pub failures: Vec<String>,
}
