//! The figures of a run, as tables and as JSON.

use std::fmt;

use serde::Serialize;

use crate::cell::{Cell, Runner, median};

/// Medians over the rounds, and all cells.
#[derive(Serialize)]
pub(crate) struct Report {
    postgresql: String,
    rows: Vec<Row>,
    cells: Vec<Cell>,
}

/// A runner beside the one that it is compared with: medians over the rounds.
#[derive(Serialize)]
struct Row {
    ours: Cell,
    theirs: Cell,
    /// Median of the ratios of each round's pair.
    ratio: f64,
}

/// What is compared with what.
const PAIRS: [(Runner, Runner); 3] = [
    (Runner::Claim, Runner::PgbenchClaim),
    (Runner::Deliver, Runner::Client),
    (Runner::Receive, Runner::PgbenchIngest),
];

impl Report {
    pub(crate) fn new(postgresql: String, cells: Vec<Cell>) -> Self {
        let mut rows = Vec::new();
        for (ours, theirs) in PAIRS {
            let mut clients: Vec<usize> = of(&cells, ours).map(|cell| cell.clients).collect();
            clients.sort_unstable();
            clients.dedup();
            for clients in clients {
                rows.extend(row(&cells, ours, theirs, clients));
            }
        }
        Self {
            postgresql,
            rows,
            cells,
        }
    }
}

fn of(cells: &[Cell], runner: Runner) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(move |cell| cell.runner == runner)
}

fn row(cells: &[Cell], ours: Runner, theirs: Runner, clients: usize) -> Option<Row> {
    let ours: Vec<&Cell> = of(cells, ours)
        .filter(|cell| cell.clients == clients)
        .collect();
    let theirs: Vec<&Cell> = of(cells, theirs)
        .filter(|cell| cell.clients == clients)
        .collect();
    // Each round runs both once, so the n-th of each are neighbours in time.
    let pairs = ours.iter().zip(&theirs);
    Some(Row {
        ratio: median(pairs.map(|(ours, theirs)| ours.per_s / theirs.per_s)),
        ours: medians(&ours)?,
        theirs: medians(&theirs)?,
    })
}

/// Each figure's own median.
fn medians(cells: &[&Cell]) -> Option<Cell> {
    let of = |value: fn(&Cell) -> f64| median(cells.iter().map(|cell| value(cell)));
    let some = |value: fn(&Cell) -> Option<f64>| {
        let values: Option<Vec<f64>> = cells.iter().map(|cell| value(cell)).collect();
        values.map(median)
    };
    let first = cells.first()?;
    Some(Cell {
        runner: first.runner,
        clients: first.clients,
        count: first.count,
        per_s: of(|cell| cell.per_s),
        p50_ms: of(|cell| cell.p50_ms),
        p99_ms: of(|cell| cell.p99_ms),
        commits: some(|cell| cell.commits),
        wal_bytes: some(|cell| cell.wal_bytes),
        own_us: some(|cell| cell.own_us),
        mean_batch: some(|cell| cell.mean_batch),
        accepted_per_s: some(|cell| cell.accepted_per_s),
        resident_mib: some(|cell| cell.resident_mib),
        peak_mib: some(|cell| cell.peak_mib),
    })
}

/// A heading, how many decimals its values have, and where they come from.
type Column = (&'static str, usize, fn(&Row) -> Option<f64>);

const CLAIM: &[Column] = &[
    ("store/s", 0, |row| Some(row.ours.per_s)),
    ("pgbench/s", 0, |row| Some(row.theirs.per_s)),
    ("ratio", 2, |row| Some(row.ratio)),
    ("p50 ms", 2, |row| Some(row.ours.p50_ms)),
    ("p99 ms", 2, |row| Some(row.ours.p99_ms)),
    ("pgb p50", 2, |row| Some(row.theirs.p50_ms)),
    ("pgb p99", 2, |row| Some(row.theirs.p99_ms)),
    ("own us", 0, |row| row.ours.own_us),
    ("commits", 3, |row| row.ours.commits),
    ("WAL bytes", 0, |row| row.ours.wal_bytes),
    ("pgb WAL", 0, |row| row.theirs.wal_bytes),
];

const DELIVER: &[Column] = &[
    ("deliver/s", 0, |row| Some(row.ours.per_s)),
    ("client/s", 0, |row| Some(row.theirs.per_s)),
    ("ratio", 2, |row| Some(row.ratio)),
    ("p50 ms", 2, |row| Some(row.ours.p50_ms)),
    ("p99 ms", 2, |row| Some(row.ours.p99_ms)),
    ("cli p50", 2, |row| Some(row.theirs.p50_ms)),
    ("cli p99", 2, |row| Some(row.theirs.p99_ms)),
    ("own us", 0, |row| row.ours.own_us),
    ("cli own", 0, |row| row.theirs.own_us),
    ("batch", 2, |row| row.ours.mean_batch),
    ("commits", 3, |row| row.ours.commits),
    ("WAL bytes", 0, |row| row.ours.wal_bytes),
    ("RSS MiB", 1, |row| row.ours.resident_mib),
    ("peak MiB", 1, |row| row.ours.peak_mib),
];

const RECEIVE: &[Column] = &[
    ("through/s", 0, |row| Some(row.ours.per_s)),
    ("accept/s", 0, |row| row.ours.accepted_per_s),
    ("pgbench/s", 0, |row| Some(row.theirs.per_s)),
    ("ratio", 2, |row| Some(row.ratio)),
    ("p50 ms", 2, |row| Some(row.ours.p50_ms)),
    ("p99 ms", 2, |row| Some(row.ours.p99_ms)),
    ("own us", 0, |row| row.ours.own_us),
    ("batch", 2, |row| row.ours.mean_batch),
    ("commits", 3, |row| row.ours.commits),
    ("WAL bytes", 0, |row| row.ours.wal_bytes),
    ("RSS MiB", 1, |row| row.ours.resident_mib),
    ("peak MiB", 1, |row| row.ours.peak_mib),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PostgreSQL {}; medians over the rounds", self.postgresql)?;
        for (columns, title, (runner, _)) in [
            (
                CLAIM,
                "claim and finish, each delivery; ms: a batch of 10",
                PAIRS[0],
            ),
            (
                DELIVER,
                "due deliveries to a sink; ms: an attempt",
                PAIRS[1],
            ),
            (
                RECEIVE,
                "received and delivered; ms: from the answer to the arrival",
                PAIRS[2],
            ),
        ] {
            let rows = self.rows.iter().filter(|row| row.ours.runner == runner);
            let rows: Vec<&Row> = rows.collect();
            if !rows.is_empty() {
                table(f, title, columns, &rows)?;
            }
        }
        write!(
            f,
            "\nown us: processor time of the measured program for each, system calls included"
        )
    }
}

fn table(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    columns: &[Column],
    rows: &[&Row],
) -> fmt::Result {
    write!(f, "\n{title}\n{:>7}", "at once")?;
    for (heading, _, _) in columns {
        write!(f, " {heading:>9}")?;
    }
    writeln!(f)?;
    for row in rows {
        write!(f, "{:>7}", row.ours.clients)?;
        for (_, decimals, value) in columns {
            match value(row) {
                Some(value) => write!(f, " {value:>9.decimals$}")?,
                None => write!(f, " {:>9}", "-")?,
            }
        }
        writeln!(f)?;
    }
    Ok(())
}
