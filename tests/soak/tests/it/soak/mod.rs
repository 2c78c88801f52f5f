//! Everything under load while its processes are killed with SIGKILL, and frozen.

mod plan;
mod sinks;
mod storm;
mod tally;

use futures::StreamExt as _;
use hookstead_aws::queue::{
    MAX_ENTRIES, QueueDepth as _, ReceiveMessages as _, SendMessages as _, SqsQueue,
};
use hookstead_domain::QueueMessage;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use self::plan::Plan;
use self::sinks::Sink;
use self::storm::Storm;
use self::tally::{Effects, Ends, Received};
use crate::child::LOST_AFTER_MS;
use crate::ground::Ground;
use crate::processes::Processes;
use crate::waiting::until_none_left;

/// Requests at once.
const SENDERS: usize = 8;

/// Messages that may wait in the queue before senders pause. The emulator looks through
/// all that it holds a dozen times for each message that it gives out: with a thousand
/// messages it does nothing else any more.
const MOST_WAITING: i64 = 60;

/// Events that are sent before they look again.
const BLOCK: u64 = 24;

/// The storm is over when all events are in and one delivery in so many is left: the last
/// ones would otherwise be killed again and again, with nothing else going on.
const CALM_AT: i64 = 50;

/// For how long the queue hides what was received. Far shorter than leases, so that what
/// a killed worker had received comes again soon, and much comes twice.
const HIDDEN_S: u32 = 5;

/// For how long workers believe that it does: longer than any lease here.
const VISIBILITY_S: u32 = 30;

/// How long the queue of dead letters must stay empty to count as empty.
const EMPTY_FOR: Duration = Duration::from_secs(1);

/// A message that waits so long is taken for lost: relays die between marking a delivery
/// and sending its message. Four times as long as the queue hides what a worker died with.
const LOST_AFTER: Duration = Duration::from_secs(20);

/// The same in a run whose leases are moved, which is over sooner.
const LOST_SOON: Duration = Duration::from_secs(8);

const SECRET: &str = "whsec_c29hay1zZWNyZXQtb2YtYWxsLXN1YnNjcmlwdGlvbnM=";

struct Soak {
    plan: Plan,
    ground: Ground,
    steady: (Sink, Uuid),
    flaky: (Sink, Uuid),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_relays_that_are_killed_lose_nothing_and_repeat_no_effect() {
    let _alone = crate::ALONE.lock().await;
    let plan = Plan::from_environment();
    println!("soak: seed {}, {} events", plan.seed, plan.events);
    let begun = Instant::now();
    let soak = Soak::new(plan).await;
    let endpoint = soak.ground.emulator.endpoint();
    let lost_after = if plan.leases_are_moved {
        LOST_SOON
    } else {
        LOST_AFTER
    };
    let processes = Processes::new(&soak.ground, &endpoint, "warn")
        .with("HOOKSTEAD_VISIBILITY_TIMEOUT_S", VISIBILITY_S)
        // Killed workers hold leases until they run out. The usual limit is for
        // destinations that hang, and would make this a test of waiting.
        .with("HOOKSTEAD_MAX_LEASES_PER_SUBSCRIPTION", 100_000)
        .with(LOST_AFTER_MS, lost_after.as_millis());
    let storm = Storm::gather(plan, &soak.ground, processes).await;
    let (end_storm, over) = watch::channel(false);
    let raging = tokio::spawn(storm.rage(over));
    soak.ingest(&endpoint).await;
    soak.until_few_are_left(soak.deliveries() / CALM_AT).await;
    end_storm.send(true).unwrap();
    let mut storm = raging.await.unwrap();
    soak.until_few_are_left(0).await;
    storm.assert_running();
    let ends = soak.check_nothing_is_lost().await;
    let blows = storm.blows();
    println!(
        "soak: {} events, {} deliveries: {ends}; kills: {} workers, {} relays; freezes: {}",
        plan.events,
        ends.len(),
        blows.workers,
        blows.relays,
        blows.freezes,
    );
    assert!(blows.workers > 0 && blows.relays > 0, "nothing was killed");
    soak.redrive(&ends).await;
    storm.assert_running();
    soak.check_everything_succeeded().await;
    println!("soak: {} s", begun.elapsed().as_secs());
}

impl Soak {
    async fn new(plan: Plan) -> Self {
        let ground = Ground::new("soak-secret-of-the-source", HIDDEN_S).await;
        ground
            .execute(
                "create schema shop;
                 create table shop.effects (event_id uuid not null, attempt bigint not null);
                 grant usage on schema shop to hookstead_worker;
                 grant insert on shop.effects to hookstead_worker",
            )
            .await;
        let (steady, flaky) = (Sink::steady().await, Sink::flaky().await);
        let subscribe = async |name: &str, destination: Value| {
            ground.subscribe(name, destination, policy(), SECRET).await
        };
        let http = |sink: &Sink| json!({ "kind": "http", "url": sink.url(), "allow_http": true });
        let steady_id = subscribe("steady", http(&steady)).await;
        let flaky_id = subscribe("flaky", http(&flaky)).await;
        subscribe("effect", json!({ "kind": "handler", "name": "effect" })).await;
        Self {
            plan,
            ground,
            steady: (steady, steady_id),
            flaky: (flaky, flaky_id),
        }
    }

    fn deliveries(&self) -> i64 {
        i64::try_from(self.plan.events).unwrap() * 3
    }

    /// Sends all events through the receiver, signed, as fast as they are worked off.
    async fn ingest(&self, endpoint: &str) {
        let receiver = self.ground.receiver(endpoint, SENDERS);
        let queue = SqsQueue::new(&self.ground.aws(endpoint), &self.ground.deliveries);
        let mut sent = 0;
        while sent < self.plan.events {
            until_none_left("messages", || async {
                // A queue that does not answer in time is too full.
                let depth = queue.depth().await.map_or(i64::MAX, u64::cast_signed);
                (depth - MOST_WAITING).max(0)
            })
            .await;
            let numbers = sent..self.plan.events.min(sent + BLOCK);
            sent = numbers.end;
            let answers = numbers.map(|number| {
                let body = json!({ "number": number, "text": "x".repeat(200) }).to_string();
                let request = self
                    .ground
                    .signed(&format!("soak-{number}"), &[], body.as_bytes());
                receiver.handle(request)
            });
            let mut answers = futures::stream::iter(answers).buffer_unordered(SENDERS);
            while let Some(answer) = answers.next().await {
                assert_eq!(answer.status, 200);
            }
        }
    }

    /// Waits until no more than so many deliveries are live.
    async fn until_few_are_left(&self, few: i64) {
        let live = "select count(*) from hookstead.live_deliveries";
        until_none_left("deliveries", || async {
            (self.ground.number(live).await - few).max(0)
        })
        .await;
    }

    /// Every pair of event and subscription has come to an end, once.
    async fn check_nothing_is_lost(&self) -> Ends {
        let mut connection = self.ground.database.connect().await;
        let ends = Ends::read(&mut connection).await;
        let owed = "select count(*) from hookstead.events e
             cross join hookstead.subscriptions s
             join hookstead.done_deliveries d
                 on d.delivery_id = hookstead.delivery_id(e.event_id, s.subscription_id) and d.round = 1";
        assert_eq!(self.ground.number(owed).await, self.deliveries());
        assert_eq!(i64::try_from(ends.len()).unwrap(), self.deliveries());
        assert_eq!(
            ends.in_state("succeeded") + ends.in_state("dead_letter"),
            ends.len()
        );
        self.check_consumers(&ends).await;
        let lost = "select count(*) from hookstead.attempts where error_class = 'worker_lost'";
        println!(
            "soak: {} attempts were lost with their worker",
            self.ground.number(lost).await
        );
        ends
    }

    /// What succeeded has reached its consumer, and effects took place exactly as often
    /// as handlers succeeded.
    async fn check_consumers(&self, ends: &Ends) {
        let mut received = Received::default();
        for (sink, subscription) in [&self.steady, &self.flaky] {
            let heard = sink.heard();
            for delivery in ends.succeeded(*subscription) {
                let taken = heard.get(&delivery).map_or(0, |heard| heard.taken);
                assert!(
                    taken > 0,
                    "{delivery} succeeded and its consumer has not got it"
                );
            }
            received.add(&heard);
        }
        let mut connection = self.ground.database.connect().await;
        let effects = Effects::read(&mut connection).await;
        println!(
            "soak: http received {}, taken {}, of which repeats {}; handler effects {}, twice {}",
            received.requests, received.taken, received.repeats, effects.rows, effects.repeated
        );
        let [(_, steady), (_, flaky)] = [&self.steady, &self.flaky];
        let over_http = ends.succeeded(*steady).count() + ends.succeeded(*flaky).count();
        let handled = i64::try_from(ends.in_state("succeeded") - over_http).unwrap();
        let once = Effects {
            rows: handled,
            events: handled,
            repeated: 0,
        };
        assert_eq!(effects, once, "each success of the handler is one effect");
    }

    /// Every dead letter was announced; moved back, each begins anew.
    async fn redrive(&self, ends: &Ends) {
        let unannounced = "select count(*) from hookstead.dead_letter_notices";
        until_none_left("notices", || self.ground.number(unannounced)).await;
        let aws = self.ground.aws(&self.ground.emulator.endpoint());
        let dead_letters = SqsQueue::new(&aws, &self.ground.dead_letters);
        let deliveries = SqsQueue::new(&aws, &self.ground.deliveries);
        let mut announced = HashSet::new();
        loop {
            let received = dead_letters.receive(MAX_ENTRIES, EMPTY_FOR).await.unwrap();
            if received.is_empty() {
                break;
            }
            for message in &received {
                // Messages that were received too often are here too. They ask for nothing.
                if let Ok(QueueMessage::DeadLetter(notice)) = QueueMessage::decode(&message.body) {
                    announced.insert(notice.delivery_id);
                }
            }
            let bodies: Vec<_> = received
                .iter()
                .map(|message| message.body.clone())
                .collect();
            assert!(deliveries.send(&bodies).await.iter().all(Result::is_ok));
            let receipts: Vec<_> = received
                .into_iter()
                .map(|message| message.receipt)
                .collect();
            assert!(
                dead_letters
                    .delete(&receipts)
                    .await
                    .iter()
                    .all(Result::is_ok)
            );
        }
        assert_eq!(
            announced.len(),
            ends.in_state("dead_letter"),
            "each dead letter is announced"
        );
        let over = "select (select count(*) from hookstead.subscriptions) * (select count(*) from hookstead.events)
            - (select count(distinct delivery_id) from hookstead.done_deliveries where state = 'succeeded')";
        until_none_left("dead letters that began anew", || self.ground.number(over)).await;
    }

    async fn check_everything_succeeded(&self) {
        let mut connection = self.ground.database.connect().await;
        let ends = Ends::read(&mut connection).await;
        println!("soak: after the redrive: {ends}");
        assert_eq!(ends.in_state("succeeded"), ends.len());
        assert_eq!(i64::try_from(ends.len()).unwrap(), self.deliveries());
        self.check_consumers(&ends).await;
    }
}

/// Short waits, and enough of them that only lost leases end a delivery.
fn policy() -> Value {
    json!({
        "schedule_s": [0.2, 0.5, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
        "jitter": 0.2,
        "timeout_ms": 1000,
        "max_age_s": 3600,
        "give_up_after_identical": null,
    })
}
