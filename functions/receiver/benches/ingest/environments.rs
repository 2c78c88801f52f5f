//! Concurrent environments: each a receiver of its own with one connection.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hookstead_receiver::{Clock, DirectoryLimits, Limits, Receiver};
use hookstead_secrets::{CacheLimits, FetchFuture, SecretProvider, SecretVersion, VersionLabel};
use hookstead_signing::Secret;
use hookstead_store::{ConnectionLimits, Connections};
use time::OffsetDateTime;
use tokio::task::JoinSet;

use crate::cell::{Cell, Runner, quantile};
use crate::sample;
use crate::server::Server;

struct OneSecret;

impl SecretProvider for OneSecret {
    fn fetch<'a>(&'a self, _reference: &'a str) -> FetchFuture<'a> {
        Box::pin(async {
            Ok(vec![SecretVersion {
                label: VersionLabel::Current,
                secret: Secret::new(sample::SECRET).expect("the secret is not blank"),
                not_after: None,
            }])
        })
    }
}

/// Threads that the environments share, as many as pgbench gets.
const THREADS: usize = 2;

/// Numbers events over all cells, so that none repeats.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What one environment saw.
struct Seen {
    latencies_ms: Vec<f64>,
    own: Duration,
}

/// Runs one cell.
pub(crate) async fn run(server: &Server, clients: usize, seconds: f64) -> anyhow::Result<Cell> {
    let (before, stored_before) = (server.counters().await?, server.events().await?);
    let length = Duration::from_secs_f64(seconds);
    let started = Instant::now();
    let threads = clients.min(THREADS);
    let mut running = JoinSet::new();
    for thread in 0..threads {
        let (url, until) = (server.url(), started + length);
        let share = clients / threads + usize::from(thread < clients % threads);
        running.spawn_blocking(move || environments(&url, share, until));
    }
    let mut latencies_ms = Vec::new();
    let mut own = Duration::ZERO;
    while let Some(seen) = running.join_next().await {
        for seen in seen?? {
            latencies_ms.extend(seen.latencies_ms);
            own += seen.own;
        }
    }
    let took = started.elapsed();
    let events = latencies_ms.len() as u64;
    anyhow::ensure!(
        server.events().await? - stored_before == events,
        "some events are missing"
    );
    let (commits_per_event, wal_bytes_per_event) =
        server.counters().await?.per_event(&before, events);
    latencies_ms.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "a count of one cell")]
    let count = events as f64;
    Ok(Cell {
        runner: Runner::Receiver,
        clients,
        events,
        events_per_s: count / took.as_secs_f64(),
        p50_ms: quantile(&latencies_ms, 0.5),
        p99_ms: quantile(&latencies_ms, 0.99),
        commits_per_event,
        wal_bytes_per_event,
        own_us_per_event: Some(own.as_secs_f64() * 1e6 / count),
    })
}

/// Some environments on a thread of their own, as an environment's runtime has one.
fn environments(url: &str, count: usize, until: Instant) -> anyhow::Result<Vec<Seen>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let mut running = JoinSet::new();
        for _ in 0..count {
            running.spawn_local(environment(receiver(url)?, until));
        }
        let mut seen = Vec::new();
        while let Some(environment) = running.join_next().await {
            seen.push(environment??);
        }
        Ok(seen)
    })
}

fn receiver(url: &str) -> anyhow::Result<Receiver<OneSecret>> {
    let limits = Limits {
        max_body_bytes: 1024 * 1024,
        store_timeout: Duration::from_secs(10),
        directory: DirectoryLimits::default(),
        secrets: CacheLimits::default(),
    };
    let connections = Connections::from_url(url, ConnectionLimits::default())?;
    Ok(Receiver::new(
        connections,
        OneSecret,
        Clock::system(),
        limits,
        None,
    ))
}

async fn environment(receiver: Receiver<OneSecret>, until: Instant) -> anyhow::Result<Seen> {
    let created = OffsetDateTime::now_utc().unix_timestamp();
    let mut seen = Seen {
        latencies_ms: Vec::new(),
        own: Duration::ZERO,
    };
    while Instant::now() < until {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let request = sample::request(sample::body(&format!("evt_{number:016}"), created));
        let sent = Instant::now();
        let handled = Timed::new(receiver.handle(request));
        let (answer, own) = handled.await;
        seen.latencies_ms.push(sent.elapsed().as_secs_f64() * 1e3);
        seen.own += own;
        anyhow::ensure!(
            answer.status == 200,
            "a request was answered {}",
            answer.status
        );
    }
    Ok(seen)
}

/// A future that measures how long it was worked on: its polls, not its waits.
struct Timed<F> {
    inner: Pin<Box<F>>,
    own: Duration,
}

impl<F: Future> Timed<F> {
    fn new(inner: F) -> Self {
        Self {
            inner: Box::pin(inner),
            own: Duration::ZERO,
        }
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = (F::Output, Duration);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let started = Instant::now();
        let polled = self.inner.as_mut().poll(context);
        self.own += started.elapsed();
        polled.map(|output| (output, self.own))
    }
}
