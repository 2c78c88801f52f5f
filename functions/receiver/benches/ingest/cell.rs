//! What one cell measured.

use serde::Serialize;

/// Who ran the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Runner {
    /// The receiver's handler.
    Receiver,
    /// pgbench with the same statement.
    Pgbench,
}

/// One cell: so many clients for so many seconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) runner: Runner,
    pub(crate) clients: usize,
    pub(crate) events: u64,
    pub(crate) events_per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Commits of the server per event.
    pub(crate) commits_per_event: f64,
    /// Bytes of write-ahead log per event, full page images included.
    pub(crate) wal_bytes_per_event: f64,
    /// Processor time in our own code per event: everything but waiting. Only of the receiver.
    pub(crate) own_us_per_event: Option<f64>,
}

/// The value below which the share `q` of the sorted values lies.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list that fits memory"
    )]
    let place = (last as f64 * q).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The median of a few values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}
