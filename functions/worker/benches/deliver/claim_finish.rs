//! Claim and finish through the store, with nothing between them.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hookstead_domain::{Finish as End, Jitter, Outcome, Terms};
use hookstead_store::delivering::{
    AttemptFacts, Claim, ClaimAnswer, ClaimRequest, Claimed, Finish, FinishAnswer, FinishedAttempt,
};
use hookstead_store::{ConnectionLimits, Connections, Operation, StoreError};
use serde_json::json;
use sqlx::PgConnection;
use tokio::task::{JoinSet, LocalSet};

use crate::cell::{Cell, Runner, number};
use crate::server::Server;
use crate::stock::{BATCH, LATENCY_MS, RESPONSE_SHA256, Stock, WORKER_ID};
use crate::{THREADS, process};

/// What one thread saw.
struct Seen {
    latencies_ms: Vec<f64>,
    began: Instant,
    ended: Instant,
    own: Duration,
}

/// Runs one cell: every client works off an equal share of the batches, one after the
/// other, on a connection of its own.
pub(crate) async fn run(
    server: &Server,
    stock: &Arc<Stock>,
    clients: usize,
) -> anyhow::Result<Cell> {
    let threads = clients.min(THREADS);
    let start = Arc::new(Barrier::new(threads));
    let mut running = JoinSet::new();
    for thread in 0..threads {
        let (url, stock) = (server.url_as("hookstead_worker"), Arc::clone(stock));
        let start = Arc::clone(&start);
        let members: Vec<usize> = (0..clients).filter(|n| n % threads == thread).collect();
        running.spawn_blocking(move || work(&url, &stock, &members, clients, &start));
    }
    let mut all = Vec::new();
    while let Some(seen) = running.join_next().await {
        all.push(seen??);
    }
    let began = all.iter().map(|seen| seen.began).min();
    let ended = all.iter().map(|seen| seen.ended).max();
    let (began, ended) = began.zip(ended).context("no thread ran")?;
    let own: Duration = all.iter().map(|seen| seen.own).sum();
    let latencies_ms: Vec<f64> = all.into_iter().flat_map(|seen| seen.latencies_ms).collect();
    let count = latencies_ms.len() * BATCH;
    let per_s = number(count) / (ended - began).as_secs_f64();
    let mut cell = Cell::new(Runner::Claim, clients, count, per_s, latencies_ms);
    cell.own_us = Some(own.as_secs_f64() * 1e6 / number(count));
    Ok(cell)
}

/// Some clients on a thread of their own.
fn work(
    url: &str,
    stock: &Arc<Stock>,
    members: &[usize],
    clients: usize,
    start: &Barrier,
) -> anyhow::Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let connected = runtime.block_on(connect(url, members.len()));
    // Before anything can fail: the other thread waits, too.
    start.wait();
    let (began, own_before) = (Instant::now(), process::thread_time()?);
    let mut running = JoinSet::new();
    let local = LocalSet::new();
    let latencies_ms = local.block_on(&runtime, async {
        for (client, connections) in members.iter().copied().zip(connected?) {
            let stock = Arc::clone(stock);
            running.spawn_local(async move { one(&connections, &stock, client, clients).await });
        }
        let mut latencies_ms = Vec::new();
        while let Some(one) = running.join_next().await {
            latencies_ms.extend(one??);
        }
        anyhow::Ok(latencies_ms)
    })?;
    Ok(Seen {
        latencies_ms,
        began,
        ended: Instant::now(),
        own: process::thread_time()?.saturating_sub(own_before),
    })
}

/// Opens the connection, and nothing else.
struct Connect;

impl Operation for Connect {
    type Output = ();

    async fn run(&self, _: &mut PgConnection) -> Result<(), StoreError> {
        Ok(())
    }
}

async fn connect(url: &str, count: usize) -> anyhow::Result<Vec<Connections>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let connections = Connections::from_url_by_key(url, ConnectionLimits::default())?;
        connections.run(&Connect).await?;
        all.push(connections);
    }
    Ok(all)
}

async fn one(
    connections: &Connections,
    stock: &Stock,
    client: usize,
    clients: usize,
) -> anyhow::Result<Vec<f64>> {
    let share = stock.batches.len() / clients;
    let mut latencies_ms = Vec::with_capacity(share);
    for batch in stock
        .batches
        .iter()
        .skip(client)
        .step_by(clients)
        .take(share)
    {
        let began = Instant::now();
        claim_and_finish(connections, batch).await?;
        latencies_ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(latencies_ms)
}

async fn claim_and_finish(
    connections: &Connections,
    requests: &[ClaimRequest],
) -> anyhow::Result<()> {
    let claim = Claim {
        requests,
        worker_id: WORKER_ID,
        max_leases_per_subscription: 10_000,
        repeated: false,
    };
    let answers = connections.run(&claim).await?;
    let mut attempts = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            ClaimAnswer::Claimed(claimed) => attempts.push(ended(&claimed)?),
            _ => anyhow::bail!("a delivery was not claimed"),
        }
    }
    let finish = Finish {
        attempts: &attempts,
        worker_id: WORKER_ID,
        region: None,
    };
    let answers = connections.run(&finish).await?;
    let all = answers
        .iter()
        .all(|answer| matches!(answer, FinishAnswer::Finished { .. }));
    anyhow::ensure!(all, "an attempt was not finished");
    Ok(())
}

/// A success, by the rules.
fn ended(claimed: &Claimed) -> anyhow::Result<FinishedAttempt> {
    let end = End {
        lease_id: claimed.lease_id,
        outcome: &Outcome::Success,
        identical: 1,
    };
    let terms = Terms {
        policy: &claimed.policy,
        jitter: Jitter::new(0.5),
        now: claimed.claimed_at,
    };
    Ok(FinishedAttempt {
        delivery_id: claimed.delivery_id,
        lease_id: claimed.lease_id,
        expired_only: false,
        next: claimed.delivery.finish(&end, &terms)?,
        facts: AttemptFacts {
            started_at: claimed.claimed_at,
            ended_at: claimed.claimed_at,
            latency_ms: Some(LATENCY_MS),
            status_code: Some(200),
            outcome: Outcome::Success.as_str(),
            error_class: None,
            error_detail: None,
            response_sha256: Some(RESPONSE_SHA256),
            response_headers: Some(json!({})),
            partner_request_id: None,
        },
        alive: Some(true),
        subject: None,
    })
}
