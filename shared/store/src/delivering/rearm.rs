//! Beginning deliveries anew that are over.

use hookstead_domain::{DeliveryId, StateName};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::StoreError;

fn columns(deliveries: &[(DeliveryId, u32)]) -> (Vec<Uuid>, Vec<i32>) {
    let ids = deliveries.iter().map(|(id, _)| id.as_uuid());
    // Beyond what the column holds there is no such round.
    let rounds = deliveries
        .iter()
        .map(|(_, round)| (*round).try_into().unwrap_or(0));
    (ids.collect(), rounds.collect())
}

fn began(rows: impl Iterator<Item = (Option<Uuid>, Option<i32>)>) -> Vec<(DeliveryId, u32)> {
    rows.filter_map(|(id, round)| Some((DeliveryId::from_uuid(id?), round?.try_into().ok()?)))
        .collect()
}

/// Begins the next round of dead letters, on the word of notices that were moved
/// back into the queue. A notice does nothing where its round is not the
/// delivery's last, is no dead letter, or its subscription is off.
///
/// Gives the deliveries that begin anew, with their new round.
///
/// # Errors
///
/// Those of the server and of the connection. The same call may be repeated.
pub async fn rearm_dead_letters(
    connection: &mut PgConnection,
    notices: &[(DeliveryId, u32)],
) -> Result<Vec<(DeliveryId, u32)>, StoreError> {
    let (ids, rounds) = columns(notices);
    let rows = sqlx::query!(
        "select delivery_id, round from hookstead.rearm_dead_letters($1, $2)",
        &ids,
        &rounds,
    )
    .fetch_all(connection)
    .await?;
    Ok(began(
        rows.into_iter().map(|row| (row.delivery_id, row.round)),
    ))
}

/// Begins the next round of deliveries that ended in one of `states`, as an operator
/// asks. What is live, or was begun anew meanwhile, is left alone.
///
/// # Errors
///
/// Those of the server and of the connection. The same call may be repeated.
pub async fn rearm(
    connection: &mut PgConnection,
    deliveries: &[(DeliveryId, u32)],
    states: &[StateName],
) -> Result<Vec<(DeliveryId, u32)>, StoreError> {
    let (ids, rounds) = columns(deliveries);
    let states: Vec<String> = states
        .iter()
        .map(|state| state.as_str().to_owned())
        .collect();
    let rows = sqlx::query!(
        "select delivery_id, round from hookstead.rearm_deliveries($1, $2, $3)",
        &ids,
        &rounds,
        &states,
    )
    .fetch_all(connection)
    .await?;
    Ok(began(
        rows.into_iter().map(|row| (row.delivery_id, row.round)),
    ))
}
