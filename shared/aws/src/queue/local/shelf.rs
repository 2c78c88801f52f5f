//! What a local queue holds. Nothing here waits or reads a clock.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tokio::time::Instant;

use crate::queue::{QueueError, Received};

/// How much a local queue holds at most: a hundred thousand of our messages, which is
/// far more than a relay puts on a queue that nobody empties, and little memory.
pub const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;

/// What holding a message costs besides its body, roughly: its place in three collections.
const OVERHEAD_BYTES: usize = 128;

type Id = u64;

#[derive(Debug)]
pub(super) struct Message {
    pub(super) body: String,
    receives: u32,
    hidden_until: Option<Instant>,
}

impl Message {
    fn cost(&self) -> usize {
        self.body.len() + OVERHEAD_BYTES
    }
}

/// What one receive found.
pub(super) struct Batch {
    pub(super) received: Vec<Received>,
    /// Bodies of messages that were received often enough.
    pub(super) dead: Vec<String>,
}

/// The messages. Bodies never show in `Debug`.
#[derive(Default)]
pub(super) struct Shelf {
    messages: HashMap<Id, Message>,
    /// In the order in which they became visible. May name deleted ones, which count for nothing.
    visible: VecDeque<Id>,
    hidden: BTreeSet<(Instant, Id)>,
    last_id: Id,
    held_bytes: usize,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf")
            .field("messages", &self.messages.len())
            .field("hidden", &self.hidden.len())
            .field("held_bytes", &self.held_bytes)
            .finish_non_exhaustive()
    }
}

impl Shelf {
    /// Adds a new message; gives the body back where there is no room for it.
    pub(super) fn put(&mut self, body: String) -> Result<(), String> {
        if self.held_bytes + body.len() + OVERHEAD_BYTES > MAX_HELD_BYTES {
            return Err(body);
        }
        self.put_back(body);
        Ok(())
    }

    /// Adds a message that was just taken out: it is never refused, it had its room.
    pub(super) fn put_back(&mut self, body: String) {
        self.last_id += 1;
        let message = Message {
            body,
            receives: 0,
            hidden_until: None,
        };
        self.held_bytes += message.cost();
        self.messages.insert(self.last_id, message);
        self.visible.push_back(self.last_id);
    }

    /// How many messages could be received at `now`.
    pub(super) fn available(&mut self, now: Instant) -> usize {
        self.reveal(now);
        self.messages.len() - self.hidden.len()
    }

    /// When the next hidden message can be received again.
    pub(super) fn next_visible_at(&self) -> Option<Instant> {
        self.hidden.first().map(|(at, _)| *at)
    }

    /// Takes the first visible message out for good.
    pub(super) fn take(&mut self, now: Instant) -> Option<Message> {
        self.reveal(now);
        let id = self.pop_visible()?;
        self.remove(id)
    }

    /// Receives up to `max` messages, which are hidden until `hidden_until`. Those that
    /// were received `limit` times already are taken out instead.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        hidden_until: Instant,
        max: usize,
        limit: Option<u32>,
    ) -> Batch {
        self.reveal(now);
        let mut batch = Batch {
            received: Vec::new(),
            dead: Vec::new(),
        };
        while batch.received.len() < max {
            let Some(id) = self.pop_visible() else {
                break;
            };
            let Some(message) = self.messages.get_mut(&id) else {
                continue;
            };
            if limit.is_some_and(|limit| message.receives >= limit) {
                batch.dead.extend(self.remove(id).map(|dead| dead.body));
                continue;
            }
            message.receives = message.receives.saturating_add(1);
            message.hidden_until = Some(hidden_until);
            self.hidden.insert((hidden_until, id));
            batch.received.push(Received {
                message_id: id.to_string(),
                receipt: receipt(id, message.receives),
                body: message.body.clone(),
                receive_count: message.receives,
            });
        }
        batch
    }

    /// Deletes the message that this receipt was last given for. An older receipt, and
    /// one of a message that is gone, delete nothing, and that is no error.
    pub(super) fn delete(&mut self, receipt: &str) -> Result<(), QueueError> {
        let Some((id, receives)) = read(receipt) else {
            return Err(QueueError::Permanent {
                code: "invalid_receipt".to_owned(),
                cause: None,
            });
        };
        let last = self.messages.get(&id).map(|message| message.receives);
        if last == Some(receives) {
            self.remove(id);
        }
        Ok(())
    }

    /// Makes visible what was hidden long enough.
    fn reveal(&mut self, now: Instant) {
        while let Some((at, id)) = self.hidden.first().copied()
            && at <= now
        {
            self.hidden.pop_first();
            if let Some(message) = self.messages.get_mut(&id) {
                message.hidden_until = None;
                self.visible.push_back(id);
            }
        }
    }

    /// The next visible message's id; deleted ones are passed over.
    fn pop_visible(&mut self) -> Option<Id> {
        while let Some(id) = self.visible.pop_front() {
            if self.messages.contains_key(&id) {
                return Some(id);
            }
        }
        None
    }

    fn remove(&mut self, id: Id) -> Option<Message> {
        let message = self.messages.remove(&id)?;
        self.held_bytes -= message.cost();
        if let Some(at) = message.hidden_until {
            self.hidden.remove(&(at, id));
        }
        Some(message)
    }
}

fn receipt(id: Id, receives: u32) -> String {
    format!("{id}-{receives}")
}

fn read(receipt: &str) -> Option<(Id, u32)> {
    let (id, receives) = receipt.split_once('-')?;
    Some((id.parse().ok()?, receives.parse().ok()?))
}
