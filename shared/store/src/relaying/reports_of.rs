//! Reports as they follow from a delivery's history.

use hookstead_domain::{
    DeliveryId, ErrorClass, InstanceId, REPORT_SCHEMA_VERSION, Report, ReportId, ReportStatus,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::reports::subject;
use super::{operation, unsigned};
use crate::error::StoreError;

/// The reports on a delivery, in their order: one for each attempt, and one for each
/// round that was cancelled. Where reporting was on at the time, these are the
/// reports that were written then, id by id and byte by byte, as long as the source's
/// choice whether reports name the event's type is still the same.
///
/// # Errors
///
/// Those of the server and of the connection, and [`StoreError::Unexpected`] for a
/// history that a later version wrote.
pub async fn reports_of(
    connection: &mut PgConnection,
    delivery_id: DeliveryId,
) -> Result<Vec<Report>, StoreError> {
    let (first, last) = event_ids(delivery_id);
    let rows = sqlx::query_file!("queries/reports_of.sql", delivery_id.as_uuid(), first, last)
        .fetch_all(connection)
        .await?;
    let mut reports = Vec::with_capacity(rows.len());
    for row in rows {
        let error_class = match row.error_class {
            Some(code) => Some(
                code.parse::<ErrorClass>()
                    .map_err(|_| unknown("error_class"))?,
            ),
            None => None,
        };
        let status = ReportStatus::from_code(&row.status).ok_or_else(|| unknown("state"))?;
        reports.push(Report {
            schema_version: REPORT_SCHEMA_VERSION,
            report_id: ReportId::derive(delivery_id, unsigned(row.round), unsigned(row.attempt)),
            instance_id: InstanceId::from_uuid(row.instance_id),
            job_id: delivery_id,
            status,
            attempt_count: unsigned(row.attempt_count),
            duration_ms: row.duration_ms.and_then(|ms| u64::try_from(ms).ok()),
            error_class,
            processed_at: row.processed_at,
            subject: subject(row.provider, row.event_type),
        });
    }
    Ok(reports)
}

/// [`reports_of`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ReportsOf(pub DeliveryId);

operation!(ReportsOf => Vec<Report>, |this, connection| reports_of(connection, this.0));

fn unknown(column: &str) -> StoreError {
    StoreError::Unexpected(format!("column {column}"))
}

/// All ids that share the delivery's time prefix: its event has one of them, and they
/// lie in one partition.
fn event_ids(delivery_id: DeliveryId) -> (Uuid, Uuid) {
    let low_bits = (1_u128 << 80) - 1;
    let id = delivery_id.as_uuid().as_u128();
    (
        Uuid::from_u128(id & !low_bits),
        Uuid::from_u128(id | low_bits),
    )
}
