//! What stands in the tables.

use sqlx::FromRow;
use time::OffsetDateTime;
use uuid::Uuid;

use super::World;

/// A delivery, live or done.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct DeliveryRow {
    pub(crate) delivery_id: Uuid,
    pub(crate) subscription_id: Uuid,
    pub(crate) round: i32,
    pub(crate) attempt_count: i32,
    pub(crate) state: String,
    pub(crate) state_reason: Option<String>,
    pub(crate) last_error_class: Option<String>,
    pub(crate) next_attempt_at: Option<OffsetDateTime>,
    pub(crate) last_attempt_at: Option<OffsetDateTime>,
}

/// An attempt.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct AttemptRow {
    pub(crate) round: i32,
    pub(crate) attempt_number: i32,
    pub(crate) started_at: OffsetDateTime,
    pub(crate) ended_at: OffsetDateTime,
    pub(crate) latency_ms: Option<i32>,
    pub(crate) status_code: Option<i32>,
    pub(crate) outcome: String,
    pub(crate) error_class: Option<String>,
    pub(crate) error_detail: Option<String>,
    pub(crate) response_sha256: Option<Vec<u8>>,
    pub(crate) response_headers: Option<serde_json::Value>,
    pub(crate) partner_request_id: Option<String>,
}

impl World {
    /// Live deliveries, oldest first.
    pub(crate) async fn live(&self) -> Vec<DeliveryRow> {
        let mut connection = self.database.connect().await;
        sqlx::query_as(
            "select delivery_id, subscription_id, round, attempt_count, state, state_reason,
                 last_error_class, next_attempt_at, last_attempt_at
             from hookstead.live_deliveries order by created_at, delivery_id",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap()
    }

    /// Deliveries that are over, by round.
    pub(crate) async fn done(&self) -> Vec<DeliveryRow> {
        let mut connection = self.database.connect().await;
        sqlx::query_as(
            "select delivery_id, subscription_id, round, attempt_count, state, state_reason,
                 last_error_class, null::timestamptz as next_attempt_at, last_attempt_at
             from hookstead.done_deliveries order by created_at, delivery_id, round",
        )
        .fetch_all(&mut connection)
        .await
        .unwrap()
    }

    /// The only delivery there is, live or in its last round.
    pub(crate) async fn only(&self) -> DeliveryRow {
        let mut rows = self.live().await;
        if rows.is_empty() {
            rows = self
                .done()
                .await
                .into_iter()
                .next_back()
                .into_iter()
                .collect();
        }
        assert_eq!(rows.len(), 1, "one delivery is expected: {rows:?}");
        rows.remove(0)
    }

    /// All attempts of a delivery, in their order.
    pub(crate) async fn attempts(&self, delivery: Uuid) -> Vec<AttemptRow> {
        let mut connection = self.database.connect().await;
        sqlx::query_as(
            "select round, attempt_number, started_at, ended_at, latency_ms, status_code, outcome,
                 error_class, error_detail, response_sha256, response_headers, partner_request_id
             from hookstead.attempts where delivery_id = $1 order by round, attempt_number",
        )
        .bind(delivery)
        .fetch_all(&mut connection)
        .await
        .unwrap()
    }

    /// How many deliveries are over in this state.
    pub(crate) async fn ended(&self, state: &str) -> usize {
        let done = self.done().await;
        done.iter().filter(|row| row.state == state).count()
    }

    /// Lets every lease have run out.
    pub(crate) async fn expire_leases(&self) {
        self.execute(
            "update hookstead.live_deliveries set lease_expires_at = now() - interval '1 second'
             where state = 'leased'",
        )
        .await;
    }
}

impl DeliveryRow {
    /// Some delivery that is over.
    pub(crate) fn example() -> Self {
        Self {
            delivery_id: Uuid::from_u128(1),
            subscription_id: Uuid::from_u128(2),
            round: 1,
            attempt_count: 1,
            state: "dead_letter".to_owned(),
            state_reason: None,
            last_error_class: None,
            next_attempt_at: None,
            last_attempt_at: None,
        }
    }
}

impl World {
    /// The only delivery that is live.
    pub(crate) async fn only_live(&self) -> DeliveryRow {
        let mut rows = self.live().await;
        assert_eq!(rows.len(), 1, "one live delivery is expected: {rows:?}");
        rows.remove(0)
    }
}
