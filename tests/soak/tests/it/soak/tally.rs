//! What came of everything, counted.

use std::collections::HashMap;
use std::fmt;

use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use crate::ground::number;

use super::sinks::Heard;

/// Deliveries by how their last round ended, as `dead_letter/worker_lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends(HashMap<Uuid, (String, Uuid)>);

impl Ends {
    pub(crate) async fn read(connection: &mut PgConnection) -> Self {
        let rows = sqlx::query(
            "select distinct on (delivery_id) delivery_id, subscription_id,
                 concat_ws('/', state, state_reason) as ended
             from hookstead.done_deliveries order by delivery_id, round desc",
        )
        .fetch_all(connection)
        .await
        .unwrap();
        let ends = rows.iter().map(|row| {
            let end = (row.get("ended"), row.get("subscription_id"));
            (row.get("delivery_id"), end)
        });
        Self(ends.collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn in_state(&self, state: &str) -> usize {
        let ends = self.0.values();
        ends.filter(|(end, _)| end.split('/').next() == Some(state))
            .count()
    }

    /// Deliveries of a subscription that succeeded.
    pub(crate) fn succeeded(&self, subscription: Uuid) -> impl Iterator<Item = Uuid> {
        let ends = self.0.iter();
        ends.filter(move |(_, (end, of))| end == "succeeded" && *of == subscription)
            .map(|(delivery, _)| *delivery)
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts = std::collections::BTreeMap::<&str, u64>::new();
        for (end, _) in self.0.values() {
            *counts.entry(end).or_default() += 1;
        }
        let counts: Vec<_> = counts
            .iter()
            .map(|(end, count)| format!("{count} {end}"))
            .collect();
        f.write_str(&counts.join(", "))
    }
}

/// What the handler wrote into its own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) rows: i64,
    pub(crate) events: i64,
    /// Events with more than one row.
    pub(crate) repeated: i64,
}

impl Effects {
    pub(crate) async fn read(connection: &mut PgConnection) -> Self {
        let repeated = "select count(*) from (
            select from shop.effects group by event_id having count(*) > 1) as repeated";
        Self {
            rows: number(connection, "select count(*) from shop.effects").await,
            events: number(
                connection,
                "select count(distinct event_id) from shop.effects",
            )
            .await,
            repeated: number(connection, repeated).await,
        }
    }
}

/// What consumers heard: requests, those that they took, and those beyond the first of
/// each delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    pub(crate) requests: u64,
    pub(crate) taken: u64,
    pub(crate) repeats: u64,
}

impl Received {
    pub(crate) fn add(&mut self, heard: &HashMap<Uuid, Heard>) {
        for one in heard.values() {
            self.requests += one.requests;
            self.taken += one.taken;
            self.repeats += one.taken.saturating_sub(1);
        }
    }
}
