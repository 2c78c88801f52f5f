//! What a relay with nothing to do costs.

use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::queue::LocalQueue;
use hookstead_store::{ConnectionLimits, Connections};
use hookstead_testkit::{FaultProxy, role};

use super::{Announce, Dispatch, Expand, Reap, Redispatch, Ship, Tidy, Whole};
use crate::phase::{Next, Step};
use crate::relay::{Queues, Relay, RelaySettings};
use crate::run::{Run, Wakes};

/// Statements a second of one phase that has nothing to do.
const MOST_PER_SECOND: f64 = 2.0;

struct Idle {
    proxy: FaultProxy,
    shared: Whole,
    wakes: Wakes,
    round_trips_per_second: f64,
}

impl Idle {
    /// Takes a step and gives its round trips and the wait that it asks for.
    async fn step<S: Step>(&self, phase: &mut S) -> (u64, Duration) {
        let run = Run::new(&self.wakes);
        let before = self.proxy.round_trips();
        let next = phase.step(&run).await.unwrap();
        let Next::Wait(wait) = next else {
            panic!("{:?} found {next:?}", S::PHASE);
        };
        (self.proxy.round_trips() - before, wait)
    }

    /// The first step opens a connection and prepares statements; the second is measured.
    async fn measure<S: Step>(&mut self, mut phase: S, expected: u64, statements: u64) {
        self.step(&mut phase).await;
        let (round_trips, wait) = self.step(&mut phase).await;
        assert_eq!(round_trips, expected, "{:?}", S::PHASE);
        let per_second = statements as f64 / wait.as_secs_f64();
        assert!(per_second <= MOST_PER_SECOND, "{:?}", S::PHASE);
        self.round_trips_per_second += round_trips as f64 / wait.as_secs_f64();
    }
}

#[tokio::test]
async fn an_idle_relay_makes_at_most_two_statements_a_second_and_phase() {
    let database = hookstead_testkit::database().await;
    let proxy = FaultProxy::start(&database.url_as(role::RELAY)).await;
    let connections = Connections::from_url(&proxy.url(), ConnectionLimits::default()).unwrap();
    let queue = Arc::new(LocalQueue::new(Duration::from_secs(60)));
    let queues = Queues {
        deliveries: queue.clone(),
        dead_letters: queue,
    };
    let relay = Relay::new(connections, queues, None, RelaySettings::named("idle"));
    let shared = relay.shared.clone();
    let mut idle = Idle {
        proxy,
        shared,
        wakes: Wakes::default(),
        round_trips_per_second: 0.0,
    };
    let of = |idle: &Idle| idle.shared.clone();
    // Its statement stands in a transaction.
    idle.measure(Expand(of(&idle)), 3, 1).await;
    idle.measure(Dispatch(of(&idle)), 2, 2).await;
    idle.measure(Redispatch(of(&idle)), 1, 1).await;
    idle.measure(Tidy(of(&idle)), 2, 2).await;
    idle.measure(Reap::new(of(&idle)), 1, 1).await;
    idle.measure(Announce(of(&idle)), 1, 1).await;
    let rate = idle.round_trips_per_second;
    assert!(rate < 12.0, "{rate} round trips a second");

    let run = Run::new(&idle.wakes);
    let next = Ship::new(of(&idle)).step(&run).await.unwrap();
    assert_eq!(next, Next::Done, "without a control plane");
}
