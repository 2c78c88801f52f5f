//! Times for people.

use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// A time in UTC, to the second.
pub(crate) fn seconds(at: OffsetDateTime) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    // The form uses what every time has.
    at.to_offset(UtcOffset::UTC)
        .format(form)
        .unwrap_or_default()
}

/// The same, or a dash.
pub(crate) fn seconds_or_dash(at: Option<OffsetDateTime>) -> String {
    at.map_or_else(|| "-".to_owned(), seconds)
}

/// The time of day in UTC, to the millisecond.
pub(crate) fn clock(at: OffsetDateTime) -> String {
    let form = format_description!("[hour]:[minute]:[second].[subsecond digits:3]");
    at.to_offset(UtcOffset::UTC)
        .format(form)
        .unwrap_or_default()
}
