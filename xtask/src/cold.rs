//! `cargo xtask bench cold`: from the start of a process to its first question for work.
//!
//! Plays the Lambda Runtime API on loopback. What it leaves out is what a machine of
//! one's own cannot show: loading the image, and the share of a processor that a
//! function's memory size buys.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::command::{cargo, succeeds};
use crate::workspace;

/// Starts of each program; the medians of so many are steady to a few percent.
const STARTS: usize = 30;

/// One program, and what its starts measured.
struct Program {
    name: &'static str,
    path: PathBuf,
    starts: Vec<Start>,
}

#[derive(Clone, Copy)]
struct Start {
    until_ready: Duration,
    resident_kib: u64,
}

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let arguments = [
        "build",
        "--quiet",
        "--release",
        "-p",
        "hookstead-receiver",
        "--bin",
        "receiver",
        "--example",
        "minimal",
    ];
    anyhow::ensure!(
        succeeds(cargo(arguments).env("SQLX_OFFLINE", "true"))?,
        "the programs do not build"
    );
    let release = workspace::target()?.join("release");
    let mut programs = [
        ("minimal", release.join("examples/minimal")),
        ("receiver", release.join("receiver")),
    ]
    .map(|(name, path)| Program {
        name,
        path,
        starts: Vec::new(),
    });
    for _ in 0..STARTS {
        for program in &mut programs {
            program.starts.push(start(&program.path)?);
        }
    }
    report(&programs)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts a program and waits until it asks for its first event.
fn start(path: &Path) -> anyhow::Result<Start> {
    let runtime_api = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let started = Instant::now();
    let mut child = Command::new(path)
        .env_clear()
        .env(
            "AWS_LAMBDA_RUNTIME_API",
            runtime_api.local_addr()?.to_string(),
        )
        .env("AWS_LAMBDA_FUNCTION_NAME", "cold")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "cold")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "cold")
        // Connections are opened when they are needed, so nothing is asked of this server.
        .env(
            "HOOKSTEAD_DATABASE_URL",
            "postgres://nobody@127.0.0.1:1/none",
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", path.display()))?;
    let measured = until_ready(&runtime_api, started, &mut child);
    child.kill().context("ending the program")?;
    child.wait().context("waiting for the program")?;
    measured
}

fn until_ready(
    runtime_api: &TcpListener,
    started: Instant,
    child: &mut Child,
) -> anyhow::Result<Start> {
    runtime_api.set_nonblocking(true)?;
    let stream = loop {
        match runtime_api.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let ended = child.try_wait()?;
                anyhow::ensure!(ended.is_none(), "the program ended before it was ready");
                std::thread::yield_now();
            }
            Err(error) => return Err(error.into()),
        }
    };
    stream.set_nonblocking(false)?;
    let mut request = String::new();
    // Held until the end: a program whose question breaks off ends.
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut request)?;
    let until_ready = started.elapsed();
    anyhow::ensure!(
        request.starts_with("GET ") && request.contains("/invocation/next"),
        "the program asked for something else first"
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident_kib = resident
        .and_then(|text| text.trim().strip_suffix("kB"))
        .and_then(|text| text.trim().parse().ok())
        .context("the kernel does not say how much memory it uses")?;
    drop(reader);
    Ok(Start {
        until_ready,
        resident_kib,
    })
}

fn report(programs: &[Program; 2]) -> anyhow::Result<()> {
    println!(
        "{:>9} {:>10} {:>10} {:>12}",
        "program", "size MB", "ready ms", "resident MiB"
    );
    let mut ready = Vec::new();
    for program in programs {
        let mut times: Vec<Duration> = program.starts.iter().map(|s| s.until_ready).collect();
        let mut resident: Vec<u64> = program.starts.iter().map(|s| s.resident_kib).collect();
        times.sort_unstable();
        resident.sort_unstable();
        let median_ms = times[STARTS / 2].as_secs_f64() * 1e3;
        let bytes = std::fs::metadata(&program.path)?.len();
        #[expect(clippy::cast_precision_loss, reason = "sizes of a program")]
        let (megabytes, mebibytes) = (bytes as f64 / 1e6, resident[STARTS / 2] as f64 / 1024.0);
        println!(
            "{:>9} {megabytes:>10.2} {median_ms:>10.2} {mebibytes:>12.1}",
            program.name
        );
        ready.push(median_ms);
    }
    println!(
        "medians of {STARTS} starts each, interleaved; receiver / minimal = {:.2}",
        ready[1] / ready[0]
    );
    Ok(())
}
