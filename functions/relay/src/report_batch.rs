//! Reports as they are sent: lines, and batches of lines.

use hookstead_domain::{Report, ReportId};
use sha2::{Digest as _, Sha256};

/// Most reports of one batch: a relay that ships all minute then keeps up with many
/// thousand a second, and one lost answer repeats no more than this.
pub const MAX_BATCH_REPORTS: u16 = 500;

/// Most bytes of one batch. Half of what common proxies take without being told to;
/// a line has 350 to 700 bytes, so the number of reports is what usually ends a batch.
pub const MAX_BATCH_BYTES: usize = 512 * 1024;

/// The bytes that stand for reports wherever they are shown or sent: the JSON of each
/// on a line of its own, each line ended by "\n".
#[must_use]
pub fn report_lines(reports: &[Report]) -> Vec<u8> {
    let mut lines = Vec::new();
    for report in reports {
        serde_json::to_writer(&mut lines, report)
            .expect("a report has ids, numbers, codes, and a time that the database holds");
        lines.push(b'\n');
    }
    lines
}

/// What is sent in one request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ReportBatch {
    pub(crate) reports: Vec<ReportId>,
    pub(crate) body: Vec<u8>,
}

impl ReportBatch {
    /// The id of the request: the same whenever the same reports are sent again.
    pub(crate) fn id(&self) -> String {
        let mut digest = Sha256::new().chain_update(b"reports");
        for report in &self.reports {
            digest.update(report.as_uuid().as_bytes());
        }
        let digest = digest.finalize();
        format!("reports_{}", hex::encode(&digest[..16]))
    }
}

/// Cuts reports into batches of at most `max_bytes`, in order. One line that is longer
/// by itself is a batch by itself.
pub(crate) fn batches(reports: &[Report], max_bytes: usize) -> Vec<ReportBatch> {
    let mut batches: Vec<ReportBatch> = Vec::new();
    for report in reports {
        let line = report_lines(std::slice::from_ref(report));
        match batches.last_mut() {
            Some(batch) if batch.body.len() + line.len() <= max_bytes => {
                batch.reports.push(report.report_id);
                batch.body.extend_from_slice(&line);
            }
            _ => batches.push(ReportBatch {
                reports: vec![report.report_id],
                body: line,
            }),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_domain::{
        DeliveryId, InstanceId, REPORT_SCHEMA_VERSION, ReportStatus, Timestamp,
    };

    fn id<T>(of: impl Fn(uuid::Uuid) -> T, number: u128) -> T {
        of(uuid::Uuid::from_u128(number))
    }

    fn reports(count: u128) -> Vec<Report> {
        let report = |number| Report {
            schema_version: REPORT_SCHEMA_VERSION,
            report_id: id(ReportId::from_uuid, number),
            instance_id: id(InstanceId::from_uuid, 1),
            job_id: id(DeliveryId::from_uuid, 2),
            status: ReportStatus::Succeeded,
            attempt_count: 1,
            duration_ms: None,
            error_class: None,
            processed_at: Timestamp::UNIX_EPOCH,
            subject: None,
        };
        (1..=count).map(report).collect()
    }

    #[test]
    fn batches_hold_every_line_in_order_and_keep_the_limit() {
        let reports = reports(20);
        let line = report_lines(&reports[..1]).len();
        for most in [1, line, 3 * line + 5, 20 * line, usize::MAX] {
            let batches = batches(&reports, most);
            let bytes: Vec<u8> = batches.iter().flat_map(|b| b.body.clone()).collect();
            assert_eq!(bytes, report_lines(&reports));
            let ids: Vec<_> = batches.iter().flat_map(|b| b.reports.clone()).collect();
            assert_eq!(ids, reports.iter().map(|r| r.report_id).collect::<Vec<_>>());
            assert_eq!(batches.len(), 20_usize.div_ceil((most / line).max(1)));
        }
        assert!(batches(&[], 1).is_empty());
    }

    #[test]
    fn the_same_reports_have_the_same_id_and_others_another() {
        let reports = reports(3);
        let id = |reports: &[Report]| batches(reports, usize::MAX)[0].id();
        assert_eq!(id(&reports), id(&reports));
        assert_ne!(id(&reports), id(&reports[..2]));
        assert_ne!(id(&reports[..1]), id(&reports[1..2]));
        assert_eq!(id(&reports).len(), "reports_".len() + 32);
    }
}
