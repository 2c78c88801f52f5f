//! A database in which something is owed, for the commands that look.

use hookstead_domain::{DeliveryId, EventId, SubscriptionId};
use hookstead_testkit::{TestDatabase, role};
use sqlx::{AssertSqlSafe, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::support::{Finished, Project};

/// A database with one event that three subscriptions are owed: one has it, one waits
/// after a failure, one gave it up.
pub(crate) struct Owed {
    pub(crate) project: Project,
    pub(crate) database: TestDatabase,
    pub(crate) admin_url: String,
    pub(crate) superuser: PgConnection,
    pub(crate) event: EventId,
}

pub(crate) const NAMES: [&str; 3] = ["a-has-it", "b-waits", "c-gave-up"];

impl Owed {
    pub(crate) async fn new() -> Self {
        let database = hookstead_testkit::database().await;
        let superuser = database.connect().await;
        let mut owed = Self {
            project: Project::with(""),
            admin_url: database.url_as(role::ADMIN),
            database,
            superuser,
            event: event_id(1),
        };
        owed.run_sql(
            "insert into hookstead.sources (name, kind) values ('app', 'stripe');
             insert into hookstead.subscriptions (name, destination)
             select name, '{\"kind\": \"pull\"}' from unnest('{a-has-it,b-waits,c-gave-up}'::text[]) as n (name);
             update hookstead.installation set reporting_since = now()",
        )
        .await;
        store(&mut owed.superuser, owed.event).await;
        owed.end(0, "succeeded", "null", "success", "null").await;
        owed.end(2, "dead_letter", "'gone'", "fail", "'gone'").await;
        let waits = owed.delivery(1).await;
        owed.run_sql(&format!(
            "update hookstead.live_deliveries
             set attempt_count = 1, last_attempt_at = now(), last_error_class = 'timeout'
             where delivery_id = '{waits}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, outcome, error_class)
             values ('{waits}', 1, 1, now(), now(), 'retry', 'timeout')"
        ))
        .await;
        owed
    }

    pub(crate) async fn run_sql(&mut self, sql: &str) {
        run(&mut self.superuser, sql).await;
    }

    pub(crate) async fn delivery(&mut self, number: usize) -> DeliveryId {
        let id: Uuid = sqlx::query_scalar(
            "select subscription_id from hookstead.subscriptions where name = $1",
        )
        .bind(NAMES[number])
        .fetch_one(&mut self.superuser)
        .await
        .unwrap();
        DeliveryId::derive(self.event, SubscriptionId::from_uuid(id))
    }

    /// Ends a delivery with one attempt, as a worker does.
    pub(crate) async fn end(
        &mut self,
        number: usize,
        state: &str,
        reason: &str,
        outcome: &str,
        class: &str,
    ) {
        let delivery = self.delivery(number).await;
        self.run_sql(&format!(
            "insert into hookstead.done_deliveries (
                 delivery_id, event_id, subscription_id, created_at, last_attempt_at, round,
                 attempt_count, attempt_budget, state, state_reason, last_error_class)
             select delivery_id, event_id, subscription_id, created_at, now(), round, 1,
                    attempt_budget, '{state}', {reason}, {class}
             from hookstead.live_deliveries where delivery_id = '{delivery}';
             delete from hookstead.live_deliveries where delivery_id = '{delivery}';
             insert into hookstead.attempts (
                 delivery_id, round, attempt_number, started_at, ended_at, latency_ms, status_code,
                 outcome, error_class)
             values ('{delivery}', 1, 1, now(), now(), 7, 200, '{outcome}', {class})"
        ))
        .await;
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Finished {
        let url = [("HOOKSTEAD_DATABASE_URL", self.admin_url.as_str())];
        self.project.run_with(&url, arguments).await
    }

    pub(crate) async fn names(&self, arguments: &[&str]) -> Vec<String> {
        let listed = self.run(&[arguments, &["--json"]].concat()).await.json();
        let rows = listed.as_array().unwrap().iter();
        let mut names: Vec<String> = rows
            .map(|row| row["subscription"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

pub(crate) async fn run(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .unwrap();
}

/// Stores an event with a delivery for each subscription, as ingest does.
pub(crate) async fn store(connection: &mut PgConnection, event: EventId) {
    run(
        connection,
        &format!(
            "insert into hookstead.events (
                 event_id, source_id, external_event_id, event_type, raw_body, content_type, headers,
                 signature_verified, received_at, schema_version)
             select '{event}', source_id, '{event}', 'invoice.paid', 'CANARY', 'text/plain', '[]',
                    false, now(), '1'
             from hookstead.sources where name = 'app';
             insert into hookstead.live_deliveries (
                 delivery_id, event_id, subscription_id, next_attempt_at, attempt_budget)
             select hookstead.delivery_id('{event}', subscription_id), '{event}', subscription_id,
                    now(), 10
             from hookstead.subscriptions"
        ),
    )
    .await;
}

pub(crate) fn event_id(number: u8) -> EventId {
    let now = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    EventId::new(u64::try_from(now).unwrap(), [number; 10])
}
