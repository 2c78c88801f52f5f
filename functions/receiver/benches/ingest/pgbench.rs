//! The same statement, sent by pgbench.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use hookstead_store::INGEST_SQL;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::process::Command;

use crate::cell::{Cell, Runner, quantile};
use crate::sample;
use crate::server::Server;

/// Tells the cells apart in the ids that pgbench makes.
static RUN: AtomicU64 = AtomicU64::new(0);

/// Runs one cell.
pub(crate) async fn run(server: &Server, clients: usize, seconds: f64) -> anyhow::Result<Cell> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("ingest.sql");
    std::fs::write(&script, script_text(&server.source_id().await?)?)?;
    let (before, stored_before) = (server.counters().await?, server.events().await?);
    let output = command(server, clients, seconds, &script, folder.path())
        .output()
        .await
        .context("running pgbench")?;
    let said = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(
        output.status.success(),
        "pgbench failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut latencies_ms = latencies(folder.path())?;
    let events = latencies_ms.len() as u64;
    anyhow::ensure!(
        server.events().await? - stored_before == events,
        "pgbench did not store what it counted"
    );
    let (commits_per_event, wal_bytes_per_event) =
        server.counters().await?.per_event(&before, events);
    latencies_ms.sort_by(f64::total_cmp);
    Ok(Cell {
        runner: Runner::Pgbench,
        clients,
        events,
        events_per_s: tps(&said).context("pgbench printed no rate")?,
        p50_ms: quantile(&latencies_ms, 0.5),
        p99_ms: quantile(&latencies_ms, 0.99),
        commits_per_event,
        wal_bytes_per_event,
        own_us_per_event: None,
    })
}

fn command(server: &Server, clients: usize, seconds: f64, script: &Path, folder: &Path) -> Command {
    let created = OffsetDateTime::now_utc().unix_timestamp();
    let body = sample::body("evt_0000000000000000", created);
    let signature = format!("t={created},v1={}", "ab".repeat(32));
    let headers: serde_json::Map<String, serde_json::Value> = sample::headers(&signature)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let mut command = Command::new(server.pgbench());
    command
        .args(["--no-vacuum", "--protocol=prepared", "--log"])
        .arg(format!("--log-prefix={}", folder.join("latency").display()))
        .arg(format!("--client={clients}"))
        .arg(format!("--jobs={}", clients.min(2)))
        .arg(format!("--time={}", seconds.ceil()))
        .arg("--file")
        .arg(script)
        .arg("--define=n=0")
        .arg(format!("--define=body=\\x{}", hex::encode(&body)))
        .arg(format!("--define=payload={body}"))
        .arg(format!(
            "--define=headers={}",
            serde_json::Value::Object(headers)
        ))
        .arg(server.url())
        .stdin(Stdio::null());
    command
}

/// The statement with pgbench's variables in place of the parameters.
///
/// The receiver makes ids in Rust; here they are put together by the server from
/// a prefix of today and a counter, which costs it about a microsecond.
fn script_text(source_id: &str) -> anyhow::Result<String> {
    let now = OffsetDateTime::now_utc();
    let run = RUN.fetch_add(1, Ordering::Relaxed);
    let ms = u64::try_from(now.unix_timestamp_nanos() / 1_000_000)?;
    let prefix = format!("{:08x}-{:04x}-7{run:03x}-8000-", ms >> 16, ms & 0xffff);
    let number = "(:n::bigint * 1000 + :client_id::bigint)";
    let received_at = now.format(&Rfc3339)?;
    let values = [
        format!("('{prefix}' || lpad(to_hex({number}), 12, '0'))::uuid"),
        format!("'{source_id}'::uuid"),
        format!("('evt_{run}_' || {number})"),
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
        "0::float8".to_owned(),
    ];
    let mut sql: String = INGEST_SQL
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        // pgbench reads a colon and a word as a variable; casts keep their two colons.
        .map(|line| format!("{line}\n"))
        .collect();
    for (n, value) in values.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", n + 1), value);
    }
    Ok(format!("\\set n :n + 1\n{sql};\n"))
}

/// Latencies from the transaction log, in milliseconds. Its third column is in microseconds.
fn latencies(folder: &Path) -> anyhow::Result<Vec<f64>> {
    let mut latencies = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("latency"));
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
