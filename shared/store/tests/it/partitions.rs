//! A day is a partition in three tables; making and dropping one stops nobody.

use hookstead_store::{ensure_partitions, ingest, partition_days_ahead};
use hookstead_testkit::role;
use sqlx::{Connection, PgConnection};
use time::{Duration, OffsetDateTime};

use crate::support::{event, fixture, run};

fn today() -> time::Date {
    OffsetDateTime::now_utc().date()
}

#[tokio::test]
async fn two_weeks_of_partitions_are_there_after_migrating() {
    let mut fixture = fixture().await;
    let ahead = partition_days_ahead(&mut fixture.admin, today())
        .await
        .unwrap();
    assert!(ahead >= 14, "{ahead} days");
    let yesterday = partition_days_ahead(&mut fixture.admin, today() - Duration::days(1));
    assert!(yesterday.await.unwrap() > ahead, "yesterday has one, too");
}

#[tokio::test]
async fn the_partitions_of_a_day_share_their_boundaries_and_days_leave_no_gap() {
    let mut fixture = fixture().await;
    let bounds: Vec<(String, Vec<String>)> = sqlx::query_as(
        "select right(c.relname, 8) as day, array_agg(pg_get_expr(c.relpartbound, c.oid))
         from pg_class c join pg_inherits i on i.inhrelid = c.oid
         where c.relkind = 'r' and i.inhparent in (
             'hookstead.events'::regclass, 'hookstead.done_deliveries'::regclass,
             'hookstead.attempts'::regclass)
         group by 1 order by 1",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert!(bounds.len() >= 15);
    let mut expected_start: Option<String> = None;
    for (day, bounds) in bounds {
        assert_eq!(bounds.len(), 3, "{day}");
        assert!(
            bounds.iter().all(|bound| *bound == bounds[0]),
            "{day}: {bounds:?}"
        );
        let mut ids = bounds[0].split('\'').filter(|part| part.len() == 36);
        let (start, end) = (
            ids.next().unwrap().to_owned(),
            ids.next().unwrap().to_owned(),
        );
        if let Some(expected) = expected_start {
            assert_eq!(start, expected, "a gap before {day}");
        }
        expected_start = Some(end);
    }
}

#[tokio::test]
async fn maintenance_makes_missing_days_and_only_those() {
    let mut fixture = fixture().await;
    let mut maintenance = fixture.database.connect_as(role::MAINTENANCE).await;
    let day = today() + Duration::days(100);
    assert_eq!(
        ensure_partitions(&mut maintenance, day, 2).await.unwrap(),
        6
    );
    assert_eq!(
        ensure_partitions(&mut maintenance, day, 3).await.unwrap(),
        3
    );
    assert_eq!(
        partition_days_ahead(&mut maintenance, day).await.unwrap(),
        3
    );
    for days in [0, 401] {
        let error = ensure_partitions(&mut maintenance, day, days)
            .await
            .unwrap_err();
        assert_eq!(error.sqlstate(), Some("22023"));
    }
    fixture.run("select 1").await;
}

#[tokio::test]
async fn a_partition_stores_like_its_parent() {
    let mut fixture = fixture().await;
    let different: Vec<String> = sqlx::query_scalar(
        "select c.relname || '.' || a.attname
         from pg_attribute p
         join pg_inherits i on i.inhparent = p.attrelid
         join pg_class c on c.oid = i.inhrelid
         join pg_attribute a on a.attrelid = c.oid and a.attname = p.attname
         where p.attrelid = 'hookstead.events'::regclass and p.attnum > 0
           and (a.attstorage, a.attcompression) is distinct from (p.attstorage, p.attcompression)",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!(different, Vec::<String>::new());
}

/// Waits until some session of this database waits for a lock.
async fn until_somebody_waits(watcher: &mut PgConnection) {
    loop {
        let waiting: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock')",
        )
        .fetch_one(&mut *watcher)
        .await
        .unwrap();
        if waiting {
            return;
        }
    }
}

#[tokio::test]
async fn a_day_is_attached_beside_an_open_ingest_without_waiting_for_it() {
    let fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let mut open = receiver.begin().await.unwrap();
    ingest(&mut open, &event(fixture.source, "evt_1", b"{}"))
        .await
        .unwrap();
    let mut maintenance = fixture.database.connect_as(role::MAINTENANCE).await;
    run(&mut maintenance, "set lock_timeout = '1ms'").await;
    let day = today() + Duration::days(100);
    assert_eq!(
        ensure_partitions(&mut maintenance, day, 1).await.unwrap(),
        3
    );
    open.commit().await.unwrap();
}

#[tokio::test]
async fn detaching_a_day_waits_for_an_open_ingest_and_stops_no_other() {
    let mut fixture = fixture().await;
    let mut receiver = fixture.receiver().await;
    let mut open = receiver.begin().await.unwrap();
    ingest(&mut open, &event(fixture.source, "evt_1", b"{}"))
        .await
        .unwrap();
    let day = today() + Duration::days(14);
    let detach = format!(
        "alter table hookstead.events detach partition hookstead.events_{:04}{:02}{:02} concurrently",
        day.year(),
        u8::from(day.month()),
        day.day()
    );
    let mut owner = fixture.database.connect().await;
    let detaching = tokio::spawn(async move { run(&mut owner, &detach).await });
    until_somebody_waits(&mut fixture.admin).await;

    let mut other = fixture.receiver().await;
    run(&mut other, "set lock_timeout = '1ms'").await;
    ingest(&mut other, &event(fixture.source, "evt_2", b"{}"))
        .await
        .unwrap();
    assert!(!detaching.is_finished());
    open.commit().await.unwrap();
    detaching.await.unwrap();
    assert_eq!(fixture.count("events").await, 2);
}
