//! What the control plane is told, and nothing besides.

use serde::{Serialize, Serializer};
use time::UtcOffset;
use time::format_description::well_known::Rfc3339;

use crate::{DeliveryId, ErrorClass, InstanceId, ReportId, StateName, Timestamp};

/// The version of the contract. Fields are only ever added under the same version.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// How a delivery stands, as it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// The consumer has it.
    Succeeded,
    /// The consumer has no use for it.
    Skipped,
    /// It will be tried again.
    Retrying,
    /// It was given up.
    DeadLetter,
    /// Nobody wants it any more.
    Cancelled,
}

/// One status report: a closed set of facts without free text.
///
/// It serialises to exactly these fields in this order. `duration_ms` and
/// `error_class` are null where there is none; `provider` and `event_type` are left
/// out unless the source opted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Always [`REPORT_SCHEMA_VERSION`] in new reports.
    pub schema_version: u32,
    /// The same in every repeat of this report.
    pub report_id: ReportId,
    /// Which installation reports.
    pub instance_id: InstanceId,
    /// The delivery.
    pub job_id: DeliveryId,
    /// How it stands.
    pub status: ReportStatus,
    /// The attempts of its round so far.
    pub attempt_count: u32,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Why the last attempt failed, if it did.
    pub error_class: Option<ErrorClass>,
    /// When it came to stand so. Written in UTC, to the microsecond as stored.
    #[serde(serialize_with = "utc")]
    pub processed_at: Timestamp,
    /// What it was about, where the source opted in.
    #[serde(flatten)]
    pub subject: Option<ReportSubject>,
}

/// What a report is about: both or neither, and only where the source opted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportSubject {
    /// The kind of the source, such as `stripe`.
    pub provider: String,
    /// The type of the event.
    pub event_type: String,
}

impl ReportStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Succeeded,
        Self::Skipped,
        Self::Retrying,
        Self::DeadLetter,
        Self::Cancelled,
    ];

    /// What is reported of a delivery that came into this state. `None`: nothing is,
    /// it is being attempted.
    #[must_use]
    pub const fn of(state: StateName) -> Option<Self> {
        match state {
            StateName::Pending => Some(Self::Retrying),
            StateName::Leased => None,
            StateName::Succeeded => Some(Self::Succeeded),
            StateName::Skipped => Some(Self::Skipped),
            StateName::DeadLetter => Some(Self::DeadLetter),
            StateName::Cancelled => Some(Self::Cancelled),
        }
    }

    /// The status as stored and sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Skipped => "skipped",
            Self::Retrying => "retrying",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of this code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.as_str() == code)
    }
}

fn utc<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let stored = moment.truncate_to_microsecond().to_offset(UtcOffset::UTC);
    let text = stored.format(&Rfc3339).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;
    use uuid::Uuid;

    fn report() -> Report {
        Report {
            schema_version: REPORT_SCHEMA_VERSION,
            report_id: ReportId::from_uuid(Uuid::from_u128(1)),
            instance_id: InstanceId::from_uuid(Uuid::from_u128(2)),
            job_id: DeliveryId::from_uuid(Uuid::from_u128(3)),
            status: ReportStatus::Retrying,
            attempt_count: 2,
            duration_ms: Some(1500),
            error_class: Some(ErrorClass::Timeout),
            processed_at: datetime!(2026-02-03 05:05:06.123_456_789 +1),
            subject: None,
        }
    }

    #[test]
    fn a_report_is_these_bytes() {
        assert_eq!(
            serde_json::to_string(&report()).unwrap(),
            concat!(
                r#"{"schema_version":1,"report_id":"00000000-0000-0000-0000-000000000001","#,
                r#""instance_id":"00000000-0000-0000-0000-000000000002","#,
                r#""job_id":"00000000-0000-0000-0000-000000000003","status":"retrying","#,
                r#""attempt_count":2,"duration_ms":1500,"error_class":"timeout","#,
                r#""processed_at":"2026-02-03T04:05:06.123456Z"}"#,
            )
        );
    }

    #[test]
    fn what_is_not_there_is_null_and_what_is_not_opted_in_is_absent() {
        let mut report = report();
        (report.duration_ms, report.error_class) = (None, None);
        let text = serde_json::to_string(&report).unwrap();
        assert!(
            text.contains(r#""duration_ms":null,"error_class":null,"#),
            "{text}"
        );
        assert!(
            !text.contains("provider") && !text.contains("event_type"),
            "{text}"
        );
        report.subject = Some(ReportSubject {
            provider: "stripe".to_owned(),
            event_type: "invoice.paid".to_owned(),
        });
        let text = serde_json::to_string(&report).unwrap();
        assert!(
            text.ends_with(r#","provider":"stripe","event_type":"invoice.paid"}"#),
            "{text}"
        );
    }

    #[test]
    fn statuses_are_written_as_they_are_stored() {
        for status in ReportStatus::ALL {
            let written = serde_json::to_value(status).unwrap();
            assert_eq!(written, status.as_str());
            assert_eq!(ReportStatus::from_code(status.as_str()), Some(status));
        }
        assert_eq!(ReportStatus::from_code("leased"), None);
    }

    #[test]
    fn every_state_but_an_attempt_under_way_is_reported() {
        for state in StateName::ALL {
            let silent = ReportStatus::of(state).is_none();
            assert_eq!(silent, state == StateName::Leased, "{state:?}");
        }
    }
}
