//! Reports that are still to be shipped.

use std::time::Duration;

use hookstead_domain::{
    DeliveryId, ErrorClass, InstanceId, Report, ReportId, ReportStatus, ReportSubject, Timestamp,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{operation, unsigned};
use crate::error::StoreError;

/// Reports of one statement that drops them: each takes milliseconds, and a table that
/// grew through an outage is dropped piece by piece.
const DROP_BATCH: i64 = 5_000;

/// The columns of a report, as they come.
struct Row {
    schema_version: i32,
    report_id: Uuid,
    instance_id: Uuid,
    job_id: Uuid,
    status: String,
    attempt_count: i32,
    duration_ms: Option<i64>,
    error_class: Option<String>,
    processed_at: Timestamp,
    provider: Option<String>,
    event_type: Option<String>,
}

impl Row {
    /// `None` where a later version wrote what this one has no word for.
    fn report(self) -> Option<Report> {
        Some(Report {
            schema_version: unsigned(self.schema_version),
            report_id: ReportId::from_uuid(self.report_id),
            instance_id: InstanceId::from_uuid(self.instance_id),
            job_id: DeliveryId::from_uuid(self.job_id),
            status: ReportStatus::from_code(&self.status)?,
            attempt_count: unsigned(self.attempt_count),
            duration_ms: self.duration_ms.and_then(|ms| u64::try_from(ms).ok()),
            error_class: match self.error_class {
                Some(code) => Some(code.parse::<ErrorClass>().ok()?),
                None => None,
            },
            processed_at: self.processed_at,
            subject: subject(self.provider, self.event_type),
        })
    }
}

/// Both or neither, as the table's check says.
pub(super) fn subject(
    provider: Option<String>,
    event_type: Option<String>,
) -> Option<ReportSubject> {
    Some(ReportSubject {
        provider: provider?,
        event_type: event_type?,
    })
}

/// Takes at most `limit` reports for the time `taken_for`: until then no other relay
/// gets them. The caller ships and acknowledges them, or releases them; what it does
/// neither of comes back by itself, so a report may be shipped more than once, with
/// the same id.
///
/// Roughly the oldest first. That is no promise: what stands last in time is to be
/// told by `processed_at`. A report of a later version that this one cannot read
/// stays for that version.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn take_reports(
    connection: &mut PgConnection,
    limit: u16,
    taken_for: Duration,
) -> Result<Vec<Report>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "with chosen as materialized (
             select r.report_id
             from hookstead.reports r
             where r.taken_until is null or r.taken_until <= now()
             limit $1::bigint
             for update skip locked
         ),
         taken as (
             update hookstead.reports r
             set taken_until = now() + $2::float8 * interval '1 second'
             where r.report_id = any (array(select c.report_id from chosen c))
             returning r.*
         )
         select schema_version, report_id, instance_id, job_id, status, attempt_count, duration_ms,
                error_class, processed_at, provider, event_type
         from taken order by created_at, report_id",
        i64::from(limit),
        taken_for.as_secs_f64(),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(Row::report).collect())
}

/// [`take_reports`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct TakeReports {
    /// Most reports.
    pub limit: u16,
    /// For how long they are the caller's.
    pub taken_for: Duration,
}

operation!(TakeReports => Vec<Report>, |this, connection| {
    take_reports(connection, this.limit, this.taken_for)
});

/// Deletes reports that the control plane acknowledged. Returns how many were still
/// there.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn acknowledge_reports(
    connection: &mut PgConnection,
    acknowledged: &[ReportId],
) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "delete from hookstead.reports where report_id = any ($1)",
        &uuids(acknowledged),
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// [`acknowledge_reports`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct AcknowledgeReports<'a>(pub &'a [ReportId]);

operation!(AcknowledgeReports<'_> => u64, |this, connection| {
    acknowledge_reports(connection, this.0)
});

/// Gives back reports that were not acknowledged: the next relay may take them at once.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn release_reports(
    connection: &mut PgConnection,
    unshipped: &[ReportId],
) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "update hookstead.reports set taken_until = null
         where report_id = any ($1) and taken_until is not null",
        &uuids(unshipped),
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

/// [`release_reports`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseReports<'a>(pub &'a [ReportId]);

operation!(ReleaseReports<'_> => u64, |this, connection| release_reports(connection, this.0));

/// The reports that were not acknowledged yet, at most `limit`, oldest first. Takes
/// nothing: for looking.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn pending_reports(
    connection: &mut PgConnection,
    limit: u16,
) -> Result<Vec<Report>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "select schema_version, report_id, instance_id, job_id, status, attempt_count, duration_ms,
                error_class, processed_at, provider, event_type
         from hookstead.reports order by created_at, report_id limit $1::bigint",
        i64::from(limit),
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().filter_map(Row::report).collect())
}

/// [`pending_reports`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct PendingReports {
    /// Most reports.
    pub limit: u16,
}

operation!(PendingReports => Vec<Report>, |this, connection| {
    pending_reports(connection, this.limit)
});

/// Switches reporting on or off. While it is off nothing is written down for the
/// control plane, and what still waited is dropped. Switching on what is on changes
/// nothing.
///
/// # Errors
///
/// Those of the server and of the connection.
pub async fn reporting(connection: &mut PgConnection, on: bool) -> Result<(), StoreError> {
    sqlx::query!(
        "update hookstead.installation
         set reporting_since = case when $1 then now() end
         where (reporting_since is not null) <> $1",
        on,
    )
    .execute(&mut *connection)
    .await?;
    // First the switch, then the rows: however many there are, no more are written.
    while !on && drop_reports(connection).await? {}
    Ok(())
}

/// Drops some reports; whether there may be more.
async fn drop_reports(connection: &mut PgConnection) -> Result<bool, StoreError> {
    let dropped = sqlx::query!(
        "delete from hookstead.reports
         where report_id = any (array(
             select report_id from hookstead.reports limit $1 for update skip locked))",
        DROP_BATCH,
    )
    .execute(connection)
    .await?;
    Ok(dropped.rows_affected() > 0)
}

/// [`reporting`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct SetReporting(pub bool);

operation!(SetReporting => (), |this, connection| reporting(connection, this.0));

fn uuids(reports: &[ReportId]) -> Vec<Uuid> {
    reports.iter().map(|report| report.as_uuid()).collect()
}
