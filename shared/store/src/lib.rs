//! All SQL of Hookstead.
//!
//! Nothing outside this crate speaks to the database. What stands here is one
//! public function per business operation; each is one statement or one
//! transaction. Errors carry SQLSTATE, constraint and table names and never a
//! value of a row.

mod connections;
mod deliveries;
pub mod delivering;
mod error;
mod events;
mod ingest;
mod manifest;
mod migrate;
pub mod payload;
pub mod relaying;
mod sources;
mod subscriptions;

pub use connections::{
    ConnectionLimits, Connections, Connector, Operation, OptionsFuture, planned_by_key,
};
pub use deliveries::{
    AttemptEnded, AttemptRecord, DeliveryDetail, DeliveryEnded, DeliveryFilter, DeliveryListing,
    DeliveryRound, EventStored, Recent, attempts_of, list_deliveries, recent, show_delivery,
};
pub use error::{ConnectionFault, Refusal, StoreError};
pub use events::{
    DeliverySummary, EventDetail, EventFilter, EventSummary, list_events, pull_event, show_event,
};
pub use ingest::{
    FirstEventId, INGEST_SQL, Ingest, Ingested, KICK_GRACE_S, NewEvent, first_event_id, ingest,
};
pub use manifest::{
    Action, Applied, Change, Desired, DesiredSource, DesiredSubscription, ManifestError, Plan,
    Subject, apply, apply_with_secrets, plan,
};
pub use migrate::{Migrated, ensure_partitions, migrate, partition_days_ahead};
pub use sources::{EnabledSources, SourceRecord, enabled_sources, source_by_name};
pub use subscriptions::{
    Added, NewSecret, SealedSecrets, Secretless, SubscriptionRecord, add_subscription,
    list_subscriptions, sealed_secrets, subscription_by_name, subscriptions_without_secret,
    switch_subscription_off, switch_subscription_on,
};
