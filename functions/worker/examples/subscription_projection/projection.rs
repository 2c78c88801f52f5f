//! The projection: what Stripe's events say about a subscription, newest first.
//!
//! Stripe promises no order. `customer.subscription.updated` can come before `created`,
//! and either after `deleted`. Each event carries the whole subscription, so the newest
//! one alone decides, and anything older is skipped. Stripe's times are whole seconds;
//! within one, `deleted` is later than `updated`, and `updated` later than `created`.
//!
//! Two updates in the same second cannot be told apart by what they carry. Where that
//! matters, implement `Reconcile` instead and fetch the subscription from Stripe's API.

use hookstead_worker::handler::{Event, Handler, HandlerError, Verdict, VersionGuard};
use serde::Deserialize;
use sqlx::PgConnection;

/// The name under which it is registered, and which a subscription's destination names:
/// `{"kind":"handler","name":"subscription_projection"}`.
pub(crate) const NAME: &str = "subscription_projection";

/// Writes `billing.subscriptions`.
pub(crate) struct SubscriptionProjection;

#[derive(Deserialize)]
struct StripeEvent {
    data: StripeData,
}

#[derive(Deserialize)]
struct StripeData {
    object: Subscription,
}

#[derive(Deserialize)]
struct Subscription {
    id: String,
    customer: String,
    status: String,
    #[serde(default)]
    cancel_at_period_end: bool,
}

/// The place of an event within its second; `None`: it says nothing about a subscription.
fn rank(event_type: &str) -> Option<i32> {
    match event_type {
        "customer.subscription.created" => Some(0),
        "customer.subscription.updated" => Some(1),
        "customer.subscription.deleted" => Some(2),
        _ => None,
    }
}

impl Handler for SubscriptionProjection {
    type Prepared = ();

    async fn prepare(&self, _event: &Event) -> Result<(), HandlerError> {
        // All that is needed is in the event.
        Ok(())
    }

    async fn handle(
        &self,
        event: &Event,
        (): &(),
        transaction: &mut PgConnection,
    ) -> Result<Verdict, HandlerError> {
        let Some(rank) = rank(event.event_type()) else {
            return Ok(Verdict::Skip("not_about_subscriptions".parse()?));
        };
        // A body of another shape will not get better by being tried again.
        let parsed = event.json::<StripeEvent>();
        let subscription = parsed.map_err(HandlerError::fail)?.data.object;
        let version = VersionGuard::of(event, rank);
        let written = sqlx::query(
            "insert into billing.subscriptions as s (
                 subscription_id, customer_id, status, cancel_at_period_end,
                 last_event_at, last_event_rank)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (subscription_id) do update set
                 customer_id = excluded.customer_id,
                 status = excluded.status,
                 cancel_at_period_end = excluded.cancel_at_period_end,
                 last_event_at = excluded.last_event_at,
                 last_event_rank = excluded.last_event_rank
             where (s.last_event_at, s.last_event_rank)
                 < (excluded.last_event_at, excluded.last_event_rank)",
        )
        .bind(subscription.id)
        .bind(subscription.customer)
        .bind(subscription.status)
        .bind(subscription.cancel_at_period_end)
        .bind(version.at)
        .bind(version.rank)
        .execute(transaction)
        .await?;
        Ok(VersionGuard::judge(&written))
    }
}
