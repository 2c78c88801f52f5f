//! The worked example: every order of its events ends in the same state.

#[path = "../../examples/subscription_projection/projection.rs"]
mod example;

use hookstead_worker::QueueRecord;
use hookstead_worker::handler::Handlers;
use serde_json::json;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use self::example::{NAME, SubscriptionProjection};
use crate::world::{World, message};

const MIGRATION: &str = include_str!("../../examples/subscription_projection/migration.sql");

/// The life of a subscription: type, time and state. Its last two are of one second.
const LIFE: [(&str, OffsetDateTime, &str); 4] = [
    (
        "customer.subscription.created",
        datetime!(2026-03-01 12:00:00 UTC),
        "incomplete",
    ),
    (
        "customer.subscription.updated",
        datetime!(2026-03-01 12:00:05 UTC),
        "active",
    ),
    (
        "customer.subscription.updated",
        datetime!(2026-03-01 12:00:06 UTC),
        "past_due",
    ),
    (
        "customer.subscription.deleted",
        datetime!(2026-03-01 12:00:06 UTC),
        "canceled",
    ),
];

struct Projected {
    world: World,
    subscription: Uuid,
}

impl Projected {
    async fn new() -> Self {
        let world = World::new().await;
        world.execute(MIGRATION).await;
        let destination = json!({"kind": "handler", "name": NAME});
        let policy = json!({"schedule_s": [0, 0, 0], "jitter": 0});
        let subscription = world.subscribe("projection", destination, policy).await;
        Self {
            world,
            subscription,
        }
    }

    fn worker(&self) -> hookstead_worker::Worker {
        let handlers = Handlers::new()
            .register(NAME, SubscriptionProjection)
            .unwrap();
        self.world.worker_with(handlers, |_| {})
    }

    /// Stores one moment of a subscription's life; gives its message.
    async fn store(&self, id: &str, moment: usize) -> QueueRecord {
        let (event_type, at, status) = LIFE[moment];
        let body = json!({
            "type": event_type,
            "data": {"object": {"id": id, "customer": "cus_1", "status": status}},
        });
        let event = self
            .world
            .event_of(event_type, body.to_string().as_bytes(), at)
            .await;
        message(World::delivery(event, self.subscription).as_uuid(), 1, 1)
    }

    async fn statuses(&self) -> Vec<String> {
        let mut connection = self.world.database.connect().await;
        sqlx::query_scalar("select status from billing.subscriptions")
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }
}

/// Every order of the moments of a life.
fn orders() -> Vec<[usize; 4]> {
    let mut orders = Vec::new();
    for number in 0..256_usize {
        let order = [
            number & 3,
            (number >> 2) & 3,
            (number >> 4) & 3,
            number >> 6,
        ];
        if (0..4).all(|moment| order.contains(&moment)) {
            orders.push(order);
        }
    }
    assert_eq!(orders.len(), 24);
    orders
}

#[tokio::test]
async fn wrk_03_every_order_with_duplicates_and_four_workers_ends_in_the_right_state() {
    let projected = Projected::new().await;
    let mut lives = Vec::new();
    for (number, order) in orders().into_iter().enumerate() {
        let mut messages = Vec::new();
        for moment in order {
            messages.push(projected.store(&format!("sub_{number}"), moment).await);
        }
        lives.push(messages);
    }
    // Each worker has a quarter of the orders, and works them off event by event.
    let working = lives.chunks(6).map(|lives| {
        let (worker, lives) = (projected.worker(), lives.to_vec());
        tokio::spawn(async move {
            for record in lives.into_iter().flatten() {
                let twice = vec![record.clone(), record.clone()];
                assert_eq!(worker.process(twice).await.failures, Vec::<String>::new());
                worker.process(vec![record]).await;
            }
        })
    });
    futures::future::try_join_all(working).await.unwrap();
    assert_eq!(projected.statuses().await, vec!["canceled"; 24]);
    let done = projected.world.done().await;
    assert_eq!(done.len(), 96);
    assert!(
        done.iter()
            .all(|row| ["succeeded", "skipped"].contains(&&*row.state))
    );
    assert!(done.iter().all(|row| row.attempt_count == 1));
}

#[tokio::test]
async fn all_events_at_once_over_four_workers_end_in_the_right_state() {
    let projected = Projected::new().await;
    let mut messages = Vec::new();
    for number in 0..10 {
        for moment in 0..4 {
            messages.push(projected.store(&format!("sub_{number}"), moment).await);
        }
    }
    let working = (0..4_usize).map(|place| {
        let worker = projected.worker();
        let mut messages = messages.clone();
        // Each begins elsewhere, and one goes backwards.
        messages.rotate_left(place * 11);
        if place == 3 {
            messages.reverse();
        }
        tokio::spawn(async move {
            for batch in messages.chunks(10) {
                worker.process(batch.to_vec()).await;
            }
        })
    });
    futures::future::try_join_all(working).await.unwrap();
    // What another worker had claimed at the time was left to it; nothing is left over.
    assert_eq!(projected.world.live().await.len(), 0);
    assert_eq!(projected.statuses().await, vec!["canceled"; 10]);
}

#[tokio::test]
async fn wrk_03_a_late_older_event_does_not_win() {
    let projected = Projected::new().await;
    let worker = projected.worker();
    for moment in [1, 0] {
        let record = projected.store("sub_1", moment).await;
        worker.process(vec![record]).await;
    }
    assert_eq!(projected.statuses().await, ["active"]);
    let done = projected.world.done().await;
    assert_eq!(done[1].state_reason.as_deref(), Some("stale"));
}

#[tokio::test]
async fn an_event_of_another_type_is_skipped_and_one_of_another_shape_given_up() {
    let projected = Projected::new().await;
    let now = OffsetDateTime::now_utc();
    projected.world.event_of("invoice.paid", b"{}", now).await;
    projected
        .world
        .event_of("customer.subscription.updated", b"{}", now)
        .await;
    projected.world.work(&projected.worker()).await;
    let states: Vec<_> = projected
        .world
        .done()
        .await
        .into_iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(states, ["skipped", "dead_letter"]);
}
