//! A producer of the customer's own, a relay, and a look at what they leave behind.

use hookstead_domain::SourceId;
use hookstead_store::relaying::{Expanded, expand_outbox};
use hookstead_testkit::role;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::support::{Fixture, fixture, run};

/// A database with the source `app` of kind `outbox`, beside the fixture's.
pub(crate) struct Relaying {
    pub(crate) fixture: Fixture,
    pub(crate) app: SourceId,
    pub(crate) relay: PgConnection,
    pub(crate) publisher: PgConnection,
}

pub(crate) async fn relaying() -> Relaying {
    let mut fixture = fixture().await;
    let app = sqlx::query_scalar(
        "insert into hookstead.sources (name, kind) values ('app', 'outbox') returning source_id",
    )
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap();
    let relay = fixture.database.connect_as(role::RELAY).await;
    let publisher = fixture.database.connect_as(role::PUBLISHER).await;
    Relaying {
        fixture,
        app: SourceId::from_uuid(app),
        relay,
        publisher,
    }
}

impl Relaying {
    /// Publishes as an application does: one call in plain SQL.
    pub(crate) async fn publish(&mut self, arguments: &str) -> Uuid {
        publish(&mut self.publisher, arguments).await
    }

    /// Publishes `count` events with one statement.
    pub(crate) async fn publish_many(&mut self, count: u32) {
        let sql = format!(
            "select count(hookstead.publish('order.paid', jsonb_build_object('n', n)))
             from generate_series(1, {count}) n"
        );
        run(&mut self.publisher, &sql).await;
    }

    pub(crate) async fn expand(&mut self) -> Expanded {
        expand_outbox(&mut self.relay, 100).await.unwrap()
    }

    /// One more relay.
    pub(crate) async fn another_relay(&self) -> PgConnection {
        self.fixture.database.connect_as(role::RELAY).await
    }

    /// Outbox rows, events, live deliveries.
    pub(crate) async fn counts(&mut self) -> (i64, i64, i64) {
        (
            self.fixture.count("outbox").await,
            self.fixture.count("events").await,
            self.fixture.count("live_deliveries").await,
        )
    }

    /// One value as text, or "none".
    pub(crate) async fn value(&mut self, sql: &str) -> String {
        value(&mut self.fixture.admin, sql).await
    }

    /// Inserts deliveries of events that are not there, which no part of dispatching
    /// looks at: due for so many seconds.
    pub(crate) async fn owe(&mut self, subscription: Uuid, count: u32, due_for_s: i32) {
        let sql = format!(
            "insert into hookstead.live_deliveries (
                 delivery_id, event_id, subscription_id, next_attempt_at, attempt_budget)
             select hookstead.delivery_id(e.id, '{subscription}'), e.id, '{subscription}',
                    now() - interval '1 second' * {due_for_s}, 10
             from (
                 select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
                         || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid as id
                 from generate_series(1, {count})
             ) e"
        );
        self.fixture.run(&sql).await;
    }
}

pub(crate) async fn publish(publisher: &mut PgConnection, arguments: &str) -> Uuid {
    let sql = format!("select hookstead.publish({arguments})");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(publisher)
        .await
        .unwrap()
}

pub(crate) async fn value(connection: &mut PgConnection, sql: &str) -> String {
    let value: Option<Option<String>> = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_optional(connection)
        .await
        .unwrap();
    value.flatten().unwrap_or_else(|| "none".to_owned())
}
