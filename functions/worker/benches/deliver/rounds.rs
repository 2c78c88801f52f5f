//! The cells in their order.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cell::{Cell, Runner, number};
use crate::child::{Task, measure};
use crate::server::Server;
use crate::sink::{Arrivals, Sink};
use crate::stock::{BATCH, Stock};
use crate::subject::{Measured, Site};
use crate::{Arguments, Kind, claim_finish, pgbench};

/// Everything that a cell stands on.
struct Bench<'a> {
    arguments: &'a Arguments,
    server: &'a Server,
    sink: &'a Sink,
    stock: Arc<Stock>,
    site: Site,
}

/// Runs all rounds. In each, a cell and the one that it is compared with are neighbours,
/// and who goes first changes from round to round.
pub(crate) async fn run(
    arguments: &Arguments,
    server: &Server,
    sink: &Sink,
) -> anyhow::Result<Vec<Cell>> {
    let subscribed = server.prepare(&sink.url()).await?;
    let site = Site {
        worker_url: server.url_as("hookstead_worker"),
        receiver_url: server.url_as("hookstead_receiver"),
        key_file: server.key_file(),
        batches: arguments.batches,
        connections: arguments.connections,
    };
    let bench = Bench {
        arguments,
        server,
        sink,
        stock: Arc::new(Stock::new(server, subscribed, arguments.deliveries).await?),
        site,
    };
    let mut cells = Vec::new();
    for round in 0..arguments.rounds {
        let in_order = |pair: [Runner; 2]| {
            let [first, second] = pair;
            if round % 2 == 0 {
                pair
            } else {
                [second, first]
            }
        };
        bench.stock.store(server).await?;
        if arguments.cells.contains(&Kind::Claim) {
            for &clients in &arguments.clients {
                for runner in in_order([Runner::Claim, Runner::PgbenchClaim]) {
                    cells.push(bench.claim(runner, clients).await?);
                }
            }
        }
        if arguments.cells.contains(&Kind::Deliver) {
            for runner in in_order([Runner::Deliver, Runner::Client]) {
                cells.push(bench.deliver(runner).await?);
            }
        }
        if arguments.cells.contains(&Kind::Receive) {
            for runner in in_order([Runner::Receive, Runner::PgbenchIngest]) {
                cells.push(bench.receive(runner).await?);
            }
        }
    }
    Ok(cells)
}

impl Bench<'_> {
    async fn claim(&self, runner: Runner, clients: usize) -> anyhow::Result<Cell> {
        self.stock.owe(self.server).await?;
        let before = self.server.counters().await?;
        let cell = if runner == Runner::Claim {
            claim_finish::run(self.server, &self.stock, clients).await?
        } else {
            pgbench::claim_and_finish(self.server, &self.stock, clients).await?
        };
        self.all_done(cell.count).await?;
        self.server.counted(&before, cell).await
    }

    async fn all_done(&self, count: usize) -> anyhow::Result<()> {
        let done = self.server.succeeded().await?;
        anyhow::ensure!(done == count, "{done} of {count} deliveries were made");
        Ok(())
    }

    async fn deliver(&self, runner: Runner) -> anyhow::Result<Cell> {
        let count = self.stock.batches.len() * BATCH;
        let at_once = self.site.batches * BATCH;
        self.stock.owe(self.server).await?;
        self.sink.take()?;
        if runner == Runner::Client {
            let measured = measure(Task::Client {
                site: self.site.clone(),
                sealed: self.stock.subscribed().sealed.clone(),
                count,
                at_once,
            });
            let mut measured = measured.await?;
            let latencies_ms = std::mem::take(&mut measured.latencies_ms);
            let per_s = number(count) / measured.seconds;
            let cell = Cell::new(runner, at_once, count, per_s, latencies_ms);
            return Ok(with_process(cell, &measured));
        }
        let before = self.server.counters().await?;
        let measured = measure(Task::Deliver {
            site: self.site.clone(),
            messages: self.stock.messages(self.server)?,
            count,
        });
        let measured = measured.await?;
        self.all_done(count).await?;
        let arrived = self.sink.take()?.0.len();
        anyhow::ensure!(arrived >= count, "{arrived} of {count} arrived");
        let per_s = number(count) / measured.seconds;
        let latencies_ms = self.server.attempts_ms().await?;
        let mut cell = Cell::new(runner, at_once, count, per_s, latencies_ms);
        cell.mean_batch = Some(measured.mean_batch);
        self.server
            .counted(&before, with_process(cell, &measured))
            .await
    }

    async fn receive(&self, runner: Runner) -> anyhow::Result<Cell> {
        let (count, senders) = (self.arguments.deliveries, self.arguments.senders);
        self.server.empty().await?;
        self.sink.take()?;
        let before = self.server.counters().await?;
        if runner == Runner::PgbenchIngest {
            let source_id = self.stock.subscribed().source_id;
            let cell = pgbench::ingest(self.server, source_id, count, senders).await?;
            return self.server.counted(&before, cell).await;
        }
        let measured = measure(Task::Receive {
            site: self.site.clone(),
            count,
            senders,
        });
        let measured = measured.await?;
        self.all_done(count).await?;
        let cell = received(senders, &measured, self.sink.take()?)?;
        self.server
            .counted(&before, with_process(cell, &measured))
            .await
    }
}

/// What the sink saw of the events, beside when they were answered.
fn received(senders: usize, measured: &Measured, arrivals: Arrivals) -> anyhow::Result<Cell> {
    let mut first: HashMap<u64, u64> = HashMap::new();
    for (event, at) in arrivals.0 {
        let seen = first.entry(event).or_insert(at);
        *seen = at.min(*seen);
    }
    let answered = &measured.answered_us;
    let count = answered.len();
    anyhow::ensure!(first.len() == count, "{} of {count} arrived", first.len());
    let seconds = |until: Option<u64>| {
        let passed = until.context("nothing arrived")? - measured.began_us;
        anyhow::Ok(std::time::Duration::from_micros(passed).as_secs_f64())
    };
    let mut latencies_ms = Vec::with_capacity(count);
    for (event, answered) in answered.iter().enumerate() {
        let arrived = first
            .get(&u64::try_from(event)?)
            .context("an event did not arrive")?;
        // The kick comes before the answer, so an event may arrive before its answer.
        let us = i32::try_from(arrived.cast_signed() - answered.cast_signed())?;
        latencies_ms.push(f64::from(us) / 1e3);
    }
    let per_s = number(count) / seconds(first.values().max().copied())?;
    let mut cell = Cell::new(Runner::Receive, senders, count, per_s, latencies_ms);
    cell.mean_batch = Some(measured.mean_batch);
    cell.accepted_per_s = Some(number(count) / seconds(answered.iter().max().copied())?);
    Ok(cell)
}

/// The cell with what the measured process knows of itself.
fn with_process(mut cell: Cell, measured: &Measured) -> Cell {
    let mib = |kib: u64| u32::try_from(kib).map_or(f64::NAN, |kib| f64::from(kib) / 1024.0);
    cell.own_us = Some(measured.own_us / number(cell.count));
    cell.resident_mib = Some(mib(measured.resident_kib));
    cell.peak_mib = Some(mib(measured.peak_kib));
    cell
}
