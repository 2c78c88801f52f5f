//! What one cell measured.

use serde::Serialize;

/// What ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Runner {
    /// The store's claim and finish.
    Claim,
    /// pgbench with the two statements.
    PgbenchClaim,
    /// Queue, poller, worker, client.
    Deliver,
    /// The client alone.
    Client,
    /// The receiver and all of the above.
    Receive,
    /// pgbench with the receiver's statement.
    PgbenchIngest,
}

/// One cell. What a runner does not have is `None`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) runner: Runner,
    /// Connections at work, or requests at once.
    pub(crate) clients: usize,
    /// Deliveries, or events that were delivered.
    pub(crate) count: usize,
    pub(crate) per_s: f64,
    /// Of a batch, of an attempt, or from the answer to the arrival.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Commits of the server for each.
    pub(crate) commits: Option<f64>,
    /// Bytes of write-ahead log for each, full page images included.
    pub(crate) wal_bytes: Option<f64>,
    /// Processor time in the measured program for each.
    pub(crate) own_us: Option<f64>,
    /// Deliveries of one claim, on average.
    pub(crate) mean_batch: Option<f64>,
    /// Requests answered per second.
    pub(crate) accepted_per_s: Option<f64>,
    /// Resident memory when all is done.
    pub(crate) resident_mib: Option<f64>,
    /// The most that it was.
    pub(crate) peak_mib: Option<f64>,
}

impl Cell {
    /// A cell with a rate and the latencies it was made of, in any order.
    pub(crate) fn new(
        runner: Runner,
        clients: usize,
        count: usize,
        per_s: f64,
        mut latencies_ms: Vec<f64>,
    ) -> Self {
        latencies_ms.sort_by(f64::total_cmp);
        Self {
            runner,
            clients,
            count,
            per_s,
            p50_ms: quantile(&latencies_ms, 0.5),
            p99_ms: quantile(&latencies_ms, 0.99),
            commits: None,
            wal_bytes: None,
            own_us: None,
            mean_batch: None,
            accepted_per_s: None,
            resident_mib: None,
            peak_mib: None,
        }
    }
}

/// A count as a number to divide with.
#[expect(clippy::cast_precision_loss, reason = "counts of one cell")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}

/// The value below which the share `q` of the sorted values lies.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index into a list that fits memory"
    )]
    let place = (number(last) * q).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The median of a few values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}
