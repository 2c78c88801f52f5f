//! The figures of a run, as a table and as JSON.

use std::fmt;

use serde::Serialize;

use crate::cell::{Cell, Runner, median};

/// Medians over the rounds.
#[derive(Serialize)]
pub(crate) struct Report {
    postgresql: String,
    rows: Vec<Row>,
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Row {
    clients: usize,
    receiver_events_per_s: f64,
    pgbench_events_per_s: f64,
    /// Median of the ratios of each round's pair.
    ratio: f64,
    receiver_p50_ms: f64,
    receiver_p99_ms: f64,
    pgbench_p50_ms: f64,
    pgbench_p99_ms: f64,
    own_us_per_event: f64,
    commits_per_event: f64,
    wal_bytes_per_event: f64,
}

impl Report {
    pub(crate) fn new(postgresql: String, clients: &[usize], cells: &[Cell]) -> Self {
        Self {
            postgresql,
            rows: clients.iter().map(|&clients| row(clients, cells)).collect(),
            cells: cells.to_vec(),
        }
    }
}

fn row(clients: usize, cells: &[Cell]) -> Row {
    let of = |runner: Runner| {
        cells
            .iter()
            .filter(move |cell| cell.clients == clients && cell.runner == runner)
    };
    let ours = |value: fn(&Cell) -> f64| median(of(Runner::Receiver).map(value));
    let theirs = |value: fn(&Cell) -> f64| median(of(Runner::Pgbench).map(value));
    // Each round runs both once, so the n-th of each are neighbours in time.
    let pairs = of(Runner::Receiver).zip(of(Runner::Pgbench));
    Row {
        clients,
        receiver_events_per_s: ours(|cell| cell.events_per_s),
        pgbench_events_per_s: theirs(|cell| cell.events_per_s),
        ratio: median(pairs.map(|(ours, theirs)| ours.events_per_s / theirs.events_per_s)),
        receiver_p50_ms: ours(|cell| cell.p50_ms),
        receiver_p99_ms: ours(|cell| cell.p99_ms),
        pgbench_p50_ms: theirs(|cell| cell.p50_ms),
        pgbench_p99_ms: theirs(|cell| cell.p99_ms),
        own_us_per_event: ours(|cell| cell.own_us_per_event.unwrap_or(f64::NAN)),
        commits_per_event: ours(|cell| cell.commits_per_event),
        wal_bytes_per_event: ours(|cell| cell.wal_bytes_per_event),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PostgreSQL {}; medians over the rounds", self.postgresql)?;
        writeln!(
            f,
            "{:>7} {:>10} {:>10} {:>6} {:>9} {:>9} {:>11} {:>11} {:>8} {:>8} {:>9}",
            "clients",
            "receiver/s",
            "pgbench/s",
            "ratio",
            "p50 ms",
            "p99 ms",
            "pgb p50 ms",
            "pgb p99 ms",
            "own us",
            "commits",
            "WAL bytes"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:>7} {:>10.0} {:>10.0} {:>6.2} {:>9.2} {:>9.2} {:>11.2} {:>11.2} {:>8.0} {:>8.3} {:>9.0}",
                row.clients,
                row.receiver_events_per_s,
                row.pgbench_events_per_s,
                row.ratio,
                row.receiver_p50_ms,
                row.receiver_p99_ms,
                row.pgbench_p50_ms,
                row.pgbench_p99_ms,
                row.own_us_per_event,
                row.commits_per_event,
                row.wal_bytes_per_event,
            )?;
        }
        write!(
            f,
            "own us: processor time in our own code per event, the driver included, waiting excluded"
        )
    }
}
