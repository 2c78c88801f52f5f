//! Connections that break, freeze, or lose the future that was using them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookstead_store::{
    ConnectionFault, ConnectionLimits, Connections, Connector, EnabledSources, Ingest, Ingested,
    Operation, OptionsFuture, StoreError,
};
use hookstead_testkit::{Fault, FaultProxy, role};
use sqlx::postgres::{PgConnectOptions, PgConnection};

use crate::support::{Fixture, event, fixture, stored_for};

/// Long enough that only a fault can use it up.
const PATIENT: Duration = Duration::from_secs(60);

fn limits(slots: usize) -> ConnectionLimits {
    ConnectionLimits {
        slots,
        acquire_timeout: PATIENT,
        connect_timeout: PATIENT,
        suspect_after: PATIENT,
        suspect_timeout: PATIENT,
    }
}

/// Opens a transaction and never comes back.
struct BeginAndStall;

impl Operation for BeginAndStall {
    type Output = ();

    async fn run(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        sqlx::raw_sql("begin").execute(connection).await?;
        std::future::pending().await
    }
}

async fn proxied(fixture: &Fixture, limits: ConnectionLimits) -> (FaultProxy, Connections) {
    let proxy = FaultProxy::start(&fixture.database.url_as(role::RECEIVER)).await;
    let connections = Connections::from_url(&proxy.url(), limits).unwrap();
    (proxy, connections)
}

async fn store(
    fixture: &Fixture,
    connections: &Connections,
    key: &str,
) -> Result<Ingested, StoreError> {
    let new = event(fixture.source, key, b"{}");
    connections.run(&Ingest(&new)).await
}

#[tokio::test]
async fn inf_06_a_connection_that_was_cut_costs_one_retry_and_no_event() {
    let mut fixture = fixture().await;
    let (proxy, connections) = proxied(&fixture, limits(1)).await;
    store(&fixture, &connections, "evt_1").await.unwrap();
    proxy.cut();
    store(&fixture, &connections, "evt_2").await.unwrap();
    store(&fixture, &connections, "evt_3").await.unwrap();
    assert_eq!(proxy.accepted(), 2);
    assert_eq!(fixture.counts().await, (3, 3, 0));
}

#[tokio::test]
async fn inf_06_a_connection_the_server_ended_costs_one_retry_and_no_event() {
    let mut fixture = fixture().await;
    let connections = fixture.connections(1);
    store(&fixture, &connections, "evt_1").await.unwrap();
    fixture
        .run(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity
             where datname = current_database() and usename = 'hookstead_receiver'",
        )
        .await;
    store(&fixture, &connections, "evt_2").await.unwrap();
    assert_eq!(fixture.counts().await, (2, 2, 0));
}

#[tokio::test]
async fn inf_06_a_silent_connection_is_given_up_and_the_event_stored_on_a_fresh_one() {
    let mut fixture = fixture().await;
    let short = ConnectionLimits {
        suspect_after: Duration::ZERO,
        suspect_timeout: Duration::from_millis(50),
        ..limits(1)
    };
    let (proxy, connections) = proxied(&fixture, short).await;
    store(&fixture, &connections, "evt_1").await.unwrap();
    // What the client sends arrives, the answers do not: the first try commits.
    proxy.set(Fault::DropReplies);
    let healed = async {
        while proxy.accepted() < 2 {
            tokio::task::yield_now().await;
        }
        proxy.set(Fault::None);
        proxy.cut();
    };
    let (outcome, ()) = tokio::join!(store(&fixture, &connections, "evt_2"), healed);
    // The fresh connection may have been cut with the rest; then the caller hears of it.
    if let Err(error) = outcome {
        assert!(error.is_transient());
        store(&fixture, &connections, "evt_2").await.unwrap();
    }
    assert_eq!(fixture.counts().await, (2, 2, 0));
}

#[tokio::test]
async fn a_slow_answer_on_a_connection_in_use_is_waited_for_and_not_asked_for_twice() {
    let mut fixture = fixture().await;
    let steady = ConnectionLimits {
        suspect_timeout: Duration::ZERO,
        ..limits(1)
    };
    let (proxy, connections) = proxied(&fixture, steady).await;
    store(&fixture, &connections, "evt_1").await.unwrap();
    let before = proxy.round_trips();
    proxy.set(Fault::Delay(Duration::from_millis(20)));
    let outcome = store(&fixture, &connections, "evt_2").await.unwrap();
    assert_eq!(stored_for(&outcome), Some(0));
    assert_eq!((proxy.round_trips() - before, proxy.accepted()), (1, 1));
    assert_eq!(fixture.counts().await, (2, 2, 0));
}

#[tokio::test]
async fn inf_02_an_operation_that_was_dropped_half_way_leaves_no_connection_behind() {
    let mut fixture = fixture().await;
    let connections = fixture.connections(1);
    for _ in 0..20 {
        let mut operation = Box::pin(connections.run(&BeginAndStall));
        // Polled until the transaction is open on the server, then dropped.
        let open = async {
            let mut watcher = fixture.database.connect().await;
            loop {
                let open: bool = sqlx::query_scalar(
                    "select exists (select from pg_stat_activity where datname = current_database()
                     and usename = 'hookstead_receiver' and state = 'idle in transaction')",
                )
                .fetch_one(&mut watcher)
                .await
                .unwrap();
                if open {
                    break;
                }
            }
        };
        tokio::select! {
            _ = &mut operation => panic!("it never ends"),
            () = open => {}
        }
        drop(operation);
    }
    store(&fixture, &connections, "evt_1").await.unwrap();
    assert_eq!(
        fixture.counts().await,
        (1, 1, 0),
        "seen at once from another session"
    );
    store(&fixture, &connections, "").await.unwrap_err();
    store(&fixture, &connections, "evt_2").await.unwrap();
    assert_eq!(fixture.counts().await, (2, 2, 0));
}

/// Counts how often it is asked.
struct Counting {
    options: PgConnectOptions,
    asked: Arc<AtomicUsize>,
}

impl Connector for Counting {
    fn options(&self) -> OptionsFuture<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(self.options.clone())))
    }
}

#[tokio::test]
async fn inf_04_every_physical_connection_asks_for_its_options_anew() {
    let fixture = fixture().await;
    let proxy = FaultProxy::start(&fixture.database.url_as(role::RECEIVER)).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let connector = Counting {
        options: proxy.url().parse().unwrap(),
        asked: Arc::clone(&asked),
    };
    let connections = Connections::new(connector, limits(1));
    assert_eq!(
        asked.load(Ordering::SeqCst),
        0,
        "nothing is opened before it is needed"
    );
    store(&fixture, &connections, "evt_1").await.unwrap();
    store(&fixture, &connections, "evt_2").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    proxy.cut();
    store(&fixture, &connections, "evt_3").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn inf_05_a_database_that_does_not_answer_is_given_up_in_time() {
    let fixture = fixture().await;
    let short = ConnectionLimits {
        connect_timeout: Duration::from_millis(50),
        ..limits(1)
    };
    let (proxy, connections) = proxied(&fixture, short).await;
    proxy.set(Fault::BlackHole);
    let error = store(&fixture, &connections, "evt_1").await.unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Connection(ConnectionFault::ConnectTimeout)
        ),
        "{error}"
    );
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_refused_connection_is_transient_and_the_next_one_works() {
    let fixture = fixture().await;
    let (proxy, connections) = proxied(&fixture, limits(1)).await;
    proxy.set(Fault::Refuse);
    let error = store(&fixture, &connections, "evt_1").await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(
        proxy.accepted(),
        1,
        "one that does not open is not tried again"
    );
    proxy.set(Fault::None);
    store(&fixture, &connections, "evt_1").await.unwrap();
}

#[tokio::test]
async fn inf_07_no_more_connections_are_opened_than_there_are_slots() {
    let mut fixture = fixture().await;
    let (proxy, connections) = proxied(&fixture, limits(2)).await;
    let racers = async {
        let mut racers = tokio::task::JoinSet::new();
        for n in 0..20 {
            let (connections, source) = (connections.clone(), fixture.source);
            racers.spawn(async move {
                let key = format!("evt_{n}");
                let new = event(source, &key, b"{}");
                connections.run(&Ingest(&new)).await.unwrap()
            });
        }
        racers.join_all().await
    };
    racers.await;
    assert_eq!(fixture.counts().await, (20, 20, 0));
    assert!(proxy.accepted() <= 2, "{} connections", proxy.accepted());
}

#[tokio::test]
async fn waiting_for_a_busy_connection_ends() {
    let fixture = fixture().await;
    let impatient = ConnectionLimits {
        acquire_timeout: Duration::from_millis(20),
        ..limits(1)
    };
    let connections =
        Connections::from_url(&fixture.database.url_as(role::RECEIVER), impatient).unwrap();
    let mut holder = Box::pin(connections.run(&BeginAndStall));
    let waiting = connections.run(&EnabledSources);
    tokio::select! {
        biased;
        _ = &mut holder => panic!("it never ends"),
        busy = waiting => assert!(matches!(busy, Err(StoreError::AcquireTimeout))),
    }
}
