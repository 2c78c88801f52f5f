//! The same statements, sent by pgbench.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use hookstead_domain::{BREAKER_THRESHOLD, LEASE_MARGIN_MS};
use hookstead_store::delivering::{CLAIM_SQL, FINISH_SQL};
use hookstead_store::{INGEST_SQL, planned_by_key};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::process::Command;
use uuid::Uuid;

use crate::THREADS;
use crate::cell::{Cell, Runner, number};
use crate::sample;
use crate::server::Server;
use crate::stock::{BATCH, Stock, WORKER_ID};

/// A script, and how often to run it.
struct Job {
    script: String,
    defines: Vec<String>,
    role: &'static str,
    /// Whether its sessions are those of workers.
    by_key: bool,
    clients: usize,
    /// Runs of each client.
    runs: usize,
}

/// Claim and finish: every client works off an equal share of the batches.
///
/// The values that pgbench cannot compute are looked up by the batch's number inside of
/// the two statements, in a small table that is always in memory. A statement of its own
/// for that would be a third round trip, which a worker has not; and would a worker make
/// it as well, both sides would only look more alike.
pub(crate) async fn claim_and_finish(
    server: &Server,
    stock: &Stock,
    clients: usize,
) -> anyhow::Result<Cell> {
    let (first_event, last_event) = stock.bounds();
    let look_up =
        |column: &str| format!("(select b.{column} from bench.batches b where b.number = :number)");
    let claim = substituted(
        CLAIM_SQL,
        &[
            look_up("deliveries"),
            look_up("rounds"),
            look_up("attempts"),
            look_up("leases"),
            format!("'{WORKER_ID}'::text"),
            format!("{LEASE_MARGIN_MS}::float8"),
            "10000::integer".to_owned(),
            format!("{BREAKER_THRESHOLD}::integer"),
            // Parameters like the store's, not texts in the statement: those would let the
            // server choose among the day partitions once and for all.
            ":first_event::uuid".to_owned(),
            ":last_event::uuid".to_owned(),
            ":repeated::boolean".to_owned(),
        ],
    )?;
    let finish = substituted(FINISH_SQL, &[look_up("finishes::jsonb")])?;
    let job = Job {
        script: format!(
            "\\set n :n + 1\n\\set number :n * {clients} + :client_id\n{claim};\n{finish};\n"
        ),
        defines: vec![
            "n=-1".to_owned(),
            format!("first_event={first_event}"),
            format!("last_event={last_event}"),
            "repeated=false".to_owned(),
        ],
        role: "hookstead_worker",
        by_key: true,
        clients,
        runs: stock.batches.len() / clients,
    };
    let (per_s, latencies_ms) = job.run(server).await?;
    let count = latencies_ms.len() * BATCH;
    let per_s = per_s * number(BATCH);
    Ok(Cell::new(
        Runner::PgbenchClaim,
        clients,
        count,
        per_s,
        latencies_ms,
    ))
}

/// Tells the cells apart in the ids that pgbench makes.
static RUN: AtomicU64 = AtomicU64::new(0);

/// The receiver's one statement. Ids are put together by the server from a prefix of now
/// and a counter, which costs it about a microsecond.
pub(crate) async fn ingest(
    server: &Server,
    source_id: Uuid,
    events: usize,
    clients: usize,
) -> anyhow::Result<Cell> {
    let now = OffsetDateTime::now_utc();
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let ms = u64::try_from(now.unix_timestamp_nanos() / 1_000_000)?;
    let prefix = format!("{:08x}-{:04x}-7{run:03x}-8000-", ms >> 16, ms & 0xffff);
    let place = "(:n::bigint * 1000 + :client_id::bigint)";
    let received_at = now.format(&Rfc3339)?;
    let values = [
        format!("('{prefix}' || lpad(to_hex({place}), 12, '0'))::uuid"),
        format!("'{source_id}'::uuid"),
        format!("('evt_{run}_' || {place})"),
        "null::text".to_owned(),
        format!("'{}'::text", sample::EVENT_TYPE),
        "null::text".to_owned(),
        "'1'::text".to_owned(),
        ":body::bytea".to_owned(),
        format!("'{}'::text", sample::CONTENT_TYPE),
        ":payload::text".to_owned(),
        "null::text".to_owned(),
        ":headers::jsonb".to_owned(),
        "true".to_owned(),
        "'AWSCURRENT'::text".to_owned(),
        format!("'{received_at}'::timestamptz"),
        format!("'{received_at}'::timestamptz"),
        "null::text".to_owned(),
        "null::uuid".to_owned(),
        "3::float8".to_owned(),
    ];
    let body = sample::body(0);
    let hex: String = body.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut headers: serde_json::Map<String, serde_json::Value> = sample::headers()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let signature = format!("t={},v1={}", now.unix_timestamp(), "ab".repeat(32));
    headers.insert("stripe-signature".to_owned(), signature.into());
    let job = Job {
        script: format!("\\set n :n + 1\n{};\n", substituted(INGEST_SQL, &values)?),
        defines: vec![
            "n=0".to_owned(),
            format!("body=\\x{hex}"),
            format!("payload={body}"),
            format!("headers={}", serde_json::Value::Object(headers)),
        ],
        role: "hookstead_receiver",
        by_key: false,
        clients,
        runs: events / clients,
    };
    let (per_s, latencies_ms) = job.run(server).await?;
    let count = latencies_ms.len();
    Ok(Cell::new(
        Runner::PgbenchIngest,
        clients,
        count,
        per_s,
        latencies_ms,
    ))
}

/// The statement without its comments, and with these in place of its parameters.
/// pgbench takes a colon and a word for a variable; casts keep their two colons.
fn substituted(sql: &str, values: &[String]) -> anyhow::Result<String> {
    let mut sql: String = sql
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .map(|line| format!("{line}\n"))
        .collect();
    let taken = sql.split('$').skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    let taken: Option<usize> = taken.max();
    anyhow::ensure!(
        taken == Some(values.len()),
        "the statement takes {taken:?} parameters, and {} are known here",
        values.len()
    );
    for (n, value) in values.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", n + 1), value);
    }
    Ok(sql)
}

impl Job {
    /// Transactions per second, connecting not included, and how long each run took.
    async fn run(&self, server: &Server) -> anyhow::Result<(f64, Vec<f64>)> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("script.sql");
        std::fs::write(&script, &self.script)?;
        let mut command = Command::new(server.pgbench());
        command
            .args(["--no-vacuum", "--protocol=prepared", "--log"])
            .arg(format!(
                "--log-prefix={}",
                folder.path().join("took").display()
            ))
            .arg(format!("--client={}", self.clients))
            .arg(format!("--jobs={}", self.clients.min(THREADS)))
            .arg(format!("--transactions={}", self.runs))
            .arg("--file")
            .arg(&script);
        for define in &self.defines {
            command.arg(format!("--define={define}"));
        }
        let url = server.url_as(self.role);
        if self.by_key {
            // The settings of the sessions that claim and finish.
            let options = planned_by_key(url.parse()?);
            command.env("PGOPTIONS", options.get_options().unwrap_or_default());
        }
        command.arg(url).stdin(Stdio::null());
        let output = command.output().await.context("running pgbench")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "pgbench failed: {complained}");
        let per_s = tps(&said).context("pgbench printed no rate")?;
        let latencies_ms = latencies(folder.path())?;
        anyhow::ensure!(
            latencies_ms.len() == self.runs * self.clients,
            "pgbench did not do all: {complained}"
        );
        Ok((per_s, latencies_ms))
    }
}

/// Latencies from the transaction log, in milliseconds. Its third column is in microseconds.
fn latencies(folder: &Path) -> anyhow::Result<Vec<f64>> {
    let mut latencies = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("took"));
        if !is_log {
            continue;
        }
        for line in std::fs::read_to_string(&path)?.lines() {
            let us: f64 = line
                .split_whitespace()
                .nth(2)
                .context("a line of pgbench's log is cut short")?
                .parse()?;
            latencies.push(us / 1e3);
        }
    }
    Ok(latencies)
}

fn tps(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.starts_with("tps = "))?;
    line.split_whitespace().nth(2)?.parse().ok()
}
