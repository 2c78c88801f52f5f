//! What happened, each thing once.

use std::collections::HashMap;
use std::time::Duration;

use hookstead_domain::{DeliveryId, EventId};
use hookstead_store::{AttemptEnded, DeliveryEnded, EventStored, Recent};
use serde::Serialize;
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::deliveries::why;
use crate::output::{bad, clock, dim, good, printable};

/// Something that happened.
#[derive(Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Happened {
    Event(EventStored),
    Attempt(AttemptEnded),
    Delivery(DeliveryEnded),
}

/// What tells it from everything else.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Event(EventId),
    Attempt(DeliveryId, i32, i32),
    Delivery(DeliveryId, i32),
}

impl Happened {
    pub(super) fn at(&self) -> OffsetDateTime {
        match self {
            Self::Event(event) => event.at,
            Self::Attempt(attempt) => attempt.at,
            Self::Delivery(delivery) => delivery.at,
        }
    }

    /// What comes first of two with one time.
    fn rank(&self) -> u8 {
        match self {
            Self::Event(_) => 0,
            Self::Attempt(_) => 1,
            Self::Delivery(_) => 2,
        }
    }

    fn key(&self) -> Key {
        match self {
            Self::Event(event) => Key::Event(event.event_id),
            Self::Attempt(one) => Key::Attempt(one.delivery_id, one.round, one.attempt_number),
            Self::Delivery(one) => Key::Delivery(one.delivery_id, one.round),
        }
    }

    /// One line for a person.
    pub(super) fn line(&self) -> String {
        let at = dim(&clock(self.at()));
        let gone = |name: &Option<String>| name.clone().unwrap_or_else(|| "(gone)".to_owned());
        match self {
            Self::Event(event) => {
                let facts = format!(
                    "{}  {}  {}  {}  {} bytes",
                    event.event_id,
                    gone(&event.source),
                    event.event_type,
                    event.external_event_id,
                    event.body_bytes,
                );
                format!("{at}  event      {}", printable(&facts))
            }
            Self::Attempt(attempt) => {
                let facts = format!(
                    "{}  {}  attempt {}",
                    attempt.delivery_id,
                    gone(&attempt.subscription),
                    attempt.attempt_number,
                );
                format!(
                    "{at}  attempt    {}  {}",
                    printable(&facts),
                    outcome(attempt)
                )
            }
            Self::Delivery(ended) => {
                let facts = format!("{}  {}", ended.delivery_id, gone(&ended.subscription));
                let state = match (ended.state.as_str(), &ended.state_reason) {
                    ("succeeded", _) => good("succeeded"),
                    (state, Some(reason)) => bad(&printable(&format!("{state}: {reason}"))),
                    (state, None) => bad(state),
                };
                format!("{at}  delivery   {}  {state}", printable(&facts))
            }
        }
    }
}

fn outcome(attempt: &AttemptEnded) -> String {
    let status = attempt.status_code.map(|status| status.to_string());
    let took = attempt.latency_ms.map(|ms| format!("{ms} ms"));
    let again = attempt
        .next_attempt_at
        .map(|at| format!("again {}", clock(at)));
    let class = attempt.error_class.as_deref();
    let mut words = vec![why(Some(&attempt.outcome), class)];
    words.extend([status, took, again].into_iter().flatten());
    let words = printable(&words.join("  "));
    if class.is_none() {
        good(&words)
    } else {
        bad(&words)
    }
}

/// What was given out already, with when.
#[derive(Default)]
pub(super) struct Seen {
    keys: HashMap<Key, Instant>,
}

impl Seen {
    /// What of this was not given out before, in the order of time.
    pub(super) fn fresh(&mut self, read: Recent, now: Instant) -> Vec<Happened> {
        let events = read.events.into_iter().map(Happened::Event);
        let attempts = read.attempts.into_iter().map(Happened::Attempt);
        let ended = read.ended.into_iter().map(Happened::Delivery);
        let mut fresh: Vec<Happened> = events
            .chain(attempts)
            .chain(ended)
            .filter(|one| self.keys.insert(one.key(), now).is_none())
            .collect();
        fresh.sort_by_key(|one| (one.at(), one.rank()));
        fresh
    }

    /// Forgets what no look has found for so long.
    pub(super) fn forget(&mut self, now: Instant, after: Duration) {
        self.keys
            .retain(|_, found_at| now.duration_since(*found_at) < after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn event(number: u128, at: i64) -> EventStored {
        EventStored {
            event_id: EventId::from_uuid(Uuid::from_u128(number)),
            at: OffsetDateTime::from_unix_timestamp(at).unwrap(),
            source: None,
            event_type: "a\u{1b}[31m".to_owned(),
            external_event_id: "evt".to_owned(),
            body_bytes: 2,
        }
    }

    fn read(events: Vec<EventStored>) -> Recent {
        Recent {
            read_at: OffsetDateTime::UNIX_EPOCH,
            events,
            attempts: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn ids(happened: &[Happened]) -> Vec<u128> {
        let ids = happened.iter().map(|one| match one {
            Happened::Event(event) => event.event_id.as_uuid().as_u128(),
            _ => unreachable!("only events are in these tests"),
        });
        ids.collect()
    }

    #[test]
    fn each_thing_is_given_once_however_often_it_is_found() {
        let mut seen = Seen::default();
        let now = Instant::now();
        let first = seen.fresh(read(vec![event(2, 20), event(3, 10)]), now);
        assert_eq!(ids(&first), [3, 2]);
        // One that commits late, with an older time and a smaller id, is still given.
        let all = || vec![event(1, 5), event(2, 20), event(3, 10)];
        assert_eq!(ids(&seen.fresh(read(all()), now)), [1]);
        assert!(seen.fresh(read(all()), now).is_empty());
    }

    #[test]
    fn what_is_still_found_is_not_forgotten() {
        let mut seen = Seen::default();
        let (start, minute) = (Instant::now(), Duration::from_secs(60));
        seen.fresh(read(vec![event(1, 1), event(2, 1)]), start);
        seen.fresh(read(vec![event(2, 1)]), start + minute);
        seen.forget(start + minute, minute);
        assert_eq!(seen.keys.len(), 1);
        assert!(
            seen.fresh(read(vec![event(2, 1)]), start + minute)
                .is_empty()
        );
    }

    #[test]
    fn a_line_obeys_no_escape_sequence() {
        let line = Happened::Event(event(1, 1)).line();
        assert!(!line.contains("\u{1b}[31m"), "{line}");
    }
}
