//! A delivery whose next attempt is to be asked for, and when there will be one.

use std::time::Duration;

use hookstead_domain::{AttemptReason, AttemptRequest, DeliveryId};
use sqlx::PgConnection;

use super::operation;
use crate::error::StoreError;

/// Most subscriptions with waiting deliveries that [`next_due_in`] looks at: far more
/// than there are, it only bounds the time.
const MAX_SUBSCRIPTIONS: i64 = 100_000;

/// A delivery that is marked as put into the queue; its message is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Due {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// Its round.
    pub round: u32,
    /// The number that the next attempt has.
    pub attempt: u32,
}

impl Due {
    /// What its message asks for.
    #[must_use]
    pub const fn request(self) -> AttemptRequest {
        AttemptRequest {
            delivery_id: self.delivery_id,
            round: self.round,
            attempt: self.attempt,
            reason: AttemptReason::Due,
        }
    }
}

/// How long until the next waiting delivery becomes due: nothing where one is, `None`
/// where none waits. Deliveries of paused subscriptions become due with the end of the
/// pause, those of disabled ones never.
///
/// Costs one look into an index per subscription that has deliveries waiting, whatever
/// their number.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn next_due_in(connection: &mut PgConnection) -> Result<Option<Duration>, StoreError> {
    let wait_s = sqlx::query_file_scalar!("queries/next_due.sql", MAX_SUBSCRIPTIONS)
        .fetch_one(connection)
        .await?;
    Ok(wait_s.map(seconds))
}

/// [`next_due_in`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct NextDueIn;

operation!(NextDueIn => Option<Duration>, |_this, connection| next_due_in(connection));

/// Seconds of the database as a duration; what lies in the past is none.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
