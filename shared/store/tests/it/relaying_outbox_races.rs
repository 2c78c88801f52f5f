//! Producers that commit late, relays that race, and one that is killed.

use hookstead_store::relaying::ExpandOutbox;
use hookstead_store::relaying::{backlog, expand_outbox};
use hookstead_store::{ConnectionLimits, Connections, StoreError, ingest};
use hookstead_testkit::{FaultProxy, role};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::relaying_support::{Relaying, publish, relaying};
use crate::support::{event, run};

#[tokio::test]
async fn out_05_a_row_that_commits_late_is_not_passed_over() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    let mut late = relaying.fixture.database.connect_as(role::PUBLISHER).await;
    run(&mut late, "begin").await;
    publish(&mut late, "'first', '{}'").await;
    relaying.publish("'second', '{}'").await;
    assert_eq!(relaying.expand().await.events, 1);
    run(&mut late, "commit").await;
    assert_eq!(relaying.expand().await.events, 1);
    assert_eq!(relaying.counts().await, (0, 2, 2));
}

#[tokio::test]
async fn two_relays_that_race_expand_each_row_once() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    relaying.publish_many(100).await;
    let mut other = relaying.another_relay().await;
    let (one, two) = tokio::join!(
        expand_outbox(&mut relaying.relay, 60),
        expand_outbox(&mut other, 60)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.duplicates + two.duplicates, 0);
    while relaying.expand().await.rows() > 0 {}
    assert_eq!(relaying.counts().await, (0, 100, 100));
}

#[tokio::test]
async fn relays_with_the_same_keys_neither_block_each_other_for_good_nor_store_twice() {
    let mut relaying = relaying().await;
    let sql = "select count(hookstead.publish('a', '{}', idempotency_key => 'k' || n % 50))
               from generate_series(1, 400) n";
    run(&mut relaying.publisher, sql).await;
    let relays = [(); 4].map(|()| relaying.another_relay());
    let mut tasks = tokio::task::JoinSet::new();
    for relay in relays {
        let mut relay = relay.await;
        tasks.spawn(async move { drain(&mut relay).await });
    }
    let events: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(events, 50);
    assert_eq!(relaying.counts().await, (0, 50, 0));
}

/// Expands until a look at the outbox finds nothing, not even what others hold.
async fn drain(relay: &mut PgConnection) -> u32 {
    let mut events = 0;
    while backlog(relay).await.unwrap().outbox > 0 {
        events += expand_outbox(relay, 25).await.unwrap().events;
    }
    events
}

/// Runs until the killed relay's transaction waits in the middle of its writing.
async fn wait_until_it_writes(relaying: &mut Relaying) {
    let waiting = "select count(*)::text from pg_stat_activity
                   where datname = current_database() and usename = 'hookstead_relay'
                     and wait_event_type = 'Lock'";
    while relaying.value(waiting).await != "1" {}
}

#[tokio::test]
async fn out_06_four_relays_on_a_thousand_rows_and_one_killed_in_the_middle() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    relaying.publish_many(1000).await;
    let proxy = FaultProxy::start(&relaying.fixture.database.url_as(role::RELAY)).await;
    let killed = Connections::from_url(&proxy.url(), ConnectionLimits::default()).unwrap();

    // It has its rows, has written keys and events, and cannot write the deliveries.
    let mut blocker = relaying.fixture.database.connect().await;
    run(
        &mut blocker,
        "begin; lock table hookstead.live_deliveries in share mode",
    )
    .await;
    let task = tokio::spawn(async move { killed.run(&ExpandOutbox { limit: 100 }).await });
    wait_until_it_writes(&mut relaying).await;
    proxy.set(hookstead_testkit::Fault::Refuse);
    proxy.cut();
    let error = task.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Connection(_)), "{error}");
    run(&mut blocker, "rollback").await;

    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut relay = relaying.another_relay().await;
        tasks.spawn(async move { drain(&mut relay).await });
    }
    let events: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(
        events, 1000,
        "what the killed one held came back, and nothing came twice"
    );
    assert_eq!(relaying.counts().await, (0, 1000, 1000));
    assert_eq!(relaying.fixture.count("event_keys").await, 1000);
}

/// Everything that a subscription can say, in every combination.
async fn every_kind_of_subscription(relaying: &mut Relaying) {
    let sql = format!(
        "insert into hookstead.subscriptions (
             name, destination, source_id, tenant, event_types, payload_filter, retry_policy, disabled_at)
         select 's' || row_number() over (), '{{\"kind\": \"pull\"}}', source::uuid, tenant, types::text[],
             filter::jsonpath, policy::jsonb, off::timestamptz
         from (values (null), ('{app}'), ('{other}')) a (source)
         cross join (values (null), ('acme'), ('umbrella')) b (tenant)
         cross join (values ('{{}}'), ('{{order.*}}'), ('{{order_paid,*.paid}}'), ('{{order%}}')) c (types)
         cross join (values (null), ('$.n > 1'), ('$ ? (@.a == null)'), ('strict $.x.y'), ('$.at.datetime()')) d (filter)
         cross join (values (hookstead.default_retry_policy()::text),
             ('{{\"schedule_s\": [1], \"jitter\": 0, \"timeout_ms\": 1, \"max_age_s\": 1, \"give_up_after_identical\": null}}')) e (policy)
         cross join (values (null), ('2026-01-01')) f (off)",
        app = relaying.app,
        other = relaying.fixture.source,
    );
    relaying.fixture.run(&sql).await;
}

#[tokio::test]
async fn what_matches_a_published_event_is_what_matches_a_received_one() {
    let mut relaying = relaying().await;
    every_kind_of_subscription(&mut relaying).await;
    let mut receiver = relaying.fixture.receiver().await;
    let bodies = [
        r#"{"n": 2}"#,
        r#"{"n": 1, "a": null}"#,
        r#"{"x": {"y": 1}}"#,
        r#"{"at": "2026-01-01T00:00:00Z"}"#,
        "no JSON",
        "[]",
    ];
    let mut key = 0;
    for event_type in ["order.paid", "order_paid", "order%", "user.new"] {
        for tenant in [None, Some("acme")] {
            for body in bodies {
                key += 1;
                let ours = format!("p{key}");
                let theirs = format!("r{key}");
                let sql = format!(
                    "select hookstead.publish_raw('{event_type}', convert_to('{body}', 'UTF8'),
                         'application/json', tenant => {}, idempotency_key => '{ours}')",
                    tenant.map_or("null".to_owned(), |tenant| format!("'{tenant}'")),
                );
                run(&mut relaying.publisher, &sql).await;
                let mut new = event(relaying.app, &theirs, body.as_bytes());
                (new.event_type, new.tenant) = (event_type, tenant);
                new.received_at = OffsetDateTime::now_utc();
                ingest(&mut receiver, &new).await.unwrap();
            }
        }
    }
    while relaying.expand().await.rows() > 0 {}
    let sql = "with owed as (
                   select left(external_event_id, 1) as way, substr(external_event_id, 2) as key, payload,
                       l.subscription_id, l.attempt_budget, l.policy,
                       (l.filter_match_us = 0) = (s.payload_filter is null) or s.payload_filter is not null as cost
                   from hookstead.events e join hookstead.live_deliveries l using (event_id)
                   join hookstead.subscriptions s using (subscription_id))
               select concat_ws(' ',
                   (select count(*) > 400 from owed where way = 'p'),
                   (select count(*) from owed where not cost),
                   (select count(*) from (
                       (select key, payload, subscription_id, attempt_budget, policy from owed where way = 'p'
                        except all
                        select key, payload, subscription_id, attempt_budget, policy from owed where way = 'r')
                       union all
                       (select key, payload, subscription_id, attempt_budget, policy from owed where way = 'r'
                        except all
                        select key, payload, subscription_id, attempt_budget, policy from owed where way = 'p')) d))";
    assert_eq!(relaying.value(sql).await, "t 0 0");
}
