//! Outbox rows become events and deliveries: whole, once, and none holds up the others.

use hookstead_domain::EventId;
use hookstead_store::relaying::{Expanded, expand_outbox};
use uuid::Uuid;

use crate::relaying_support::{Relaying, relaying};
use crate::support::run;

#[tokio::test]
async fn an_outbox_row_becomes_an_event_with_its_facts_and_deliveries_that_are_due() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    let cause = Uuid::from_u128(7);
    let outbox_id = relaying
        .publish(&format!(
            "'order.paid', '{{\"b\":1, \"a\":1.0}}', tenant => 'acme', aggregate_type => 'order',
             aggregate_id => '42', occurred_at => '2026-01-02 03:04:05+00',
             cause_event_id => '{cause}', schema_version => '9'"
        ))
        .await;
    let expanded = relaying.expand().await;
    let expected = Expanded {
        events: 1,
        deliveries: 1,
        ..Expanded::default()
    };
    assert_eq!(expanded, expected);
    let sql =
        "select concat_ws(' ', external_event_id, event_type, tenant, schema_version, content_type,
                   convert_from(raw_body, 'UTF8'), payload, headers, signature_verified,
                   extract(epoch from occurred_at)::bigint, cause_event_id,
                   coalesce(idempotency_key, verified_with, payload_error, region, 'no more'))
               from hookstead.events";
    let expected = format!(
        "{outbox_id} order.paid acme 9 application/json {{\"a\": 1.0, \"b\": 1}} \
         {{\"a\": 1.0, \"b\": 1}} {{}} f 1767323045 {cause} no more"
    );
    assert_eq!(relaying.value(sql).await, expected);
    let sql = "select concat_ws(' ', l.delivery_id = hookstead.delivery_id(e.event_id, l.subscription_id),
                   l.created_at = e.received_at, l.next_attempt_at = e.received_at,
                   l.next_attempt_at <= now(), l.scheduled_at is null, l.ordering_key, l.attempt_budget)
               from hookstead.live_deliveries l join hookstead.events e using (event_id)";
    assert_eq!(relaying.value(sql).await, "t t t t t order/42 10");
    assert_eq!(relaying.counts().await, (0, 1, 1));
}

#[tokio::test]
async fn an_event_is_received_when_it_is_expanded_as_its_id_says() {
    let mut relaying = relaying().await;
    relaying.publish("'a', '{}'").await;
    // Announced long ago, before there was a partition for it.
    relaying
        .fixture
        .run("update hookstead.outbox set created_at = now() - interval '40 days', expand_at = now() - interval '40 days'")
        .await;
    assert_eq!(relaying.expand().await.events, 1);
    let (id, received_ms): (Uuid, i64) = sqlx::query_as(
        "select event_id, floor(extract(epoch from received_at) * 1000)::bigint from hookstead.events
         where received_at > now() - interval '1 hour'",
    )
    .fetch_one(&mut relaying.fixture.admin)
    .await
    .unwrap();
    let of_id = EventId::from_uuid(id).received_at_ms();
    assert_eq!(i64::try_from(of_id).unwrap(), received_ms);
}

#[tokio::test]
async fn what_is_expanded_is_not_expanded_again() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    relaying.publish_many(3).await;
    assert_eq!(relaying.expand().await.events, 3);
    assert_eq!(relaying.expand().await, Expanded::default());
    assert_eq!(relaying.counts().await, (0, 3, 3));
}

#[tokio::test]
async fn a_key_that_its_source_has_used_before_is_a_duplicate_in_one_batch_and_later() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    for _ in 0..2 {
        relaying.publish("'a', '{}', idempotency_key => 'k'").await;
    }
    let expanded = relaying.expand().await;
    assert_eq!((expanded.events, expanded.duplicates), (1, 1));
    relaying.publish("'a', '{}', idempotency_key => 'k'").await;
    let expanded = relaying.expand().await;
    assert_eq!((expanded.events, expanded.duplicates), (0, 1));
    assert_eq!(relaying.counts().await, (0, 1, 1));
}

#[tokio::test]
async fn bodies_become_payloads_by_the_rules_of_ingest() {
    let mut relaying = relaying().await;
    for (body, content_type) in [
        (r"'\x7b7d'", "application/json"),
        (
            r"'\x613d31'",
            "application/x-www-form-urlencoded; charset=utf-8",
        ),
        (r"'\xff'", "application/octet-stream"),
        (r"'\x225c753030303022'", "application/json"),
        (r"''", "text/plain"),
    ] {
        let sql = format!("select hookstead.publish_raw('t', {body}, '{content_type}')");
        run(&mut relaying.publisher, &sql).await;
    }
    assert_eq!(relaying.expand().await.events, 5);
    let sql =
        "select string_agg(concat_ws('/', encode(raw_body, 'hex'), payload, payload_error), ' '
                   order by octet_length(raw_body), raw_body) from hookstead.events";
    assert_eq!(
        relaying.value(sql).await,
        r#" ff/not_utf8 7b7d/{} 613d31/{"a": "1"} 225c753030303022/nul_escape"#
    );
}

#[tokio::test]
async fn a_call_reads_no_more_bodies_than_a_small_function_can_hold() {
    let mut relaying = relaying().await;
    let sql = "select count(hookstead.publish_raw('t', convert_to(repeat('x', 3 << 20), 'UTF8'), 'text/plain'))
               from generate_series(1, 4)";
    run(&mut relaying.publisher, sql).await;
    assert_eq!(
        relaying.expand().await.events,
        3,
        "those within 8 MiB, and the one that crosses it"
    );
    assert_eq!(relaying.expand().await.events, 1);
}

/// Adds a rule that the row with the aggregate `x/poison` breaks in one of the tables.
async fn poison(relaying: &mut Relaying, table: &str) {
    let rule = match table {
        "event_keys" => "external_event_id <> 'poison'",
        "events" => "idempotency_key is distinct from 'poison'",
        _ => "ordering_key is distinct from 'x/poison'",
    };
    let sql =
        format!("alter table hookstead.{table} add constraint injected check ({rule}) not valid");
    relaying.fixture.run(&sql).await;
}

#[tokio::test]
async fn a_row_that_fails_at_any_step_holds_up_nobody_and_passes_once_the_cause_is_mended() {
    let mut relaying = relaying().await;
    relaying.fixture.subscribe("orders").await;
    for (round, table) in ["event_keys", "events", "live_deliveries"]
        .into_iter()
        .enumerate()
    {
        let before = relaying.counts().await;
        poison(&mut relaying, table).await;
        relaying
            .publish("'a', '{}', aggregate_type => 'x', aggregate_id => 'poison', idempotency_key => 'poison'")
            .await;
        relaying.publish_many(5).await;
        let expanded = relaying.expand().await;
        assert_eq!((expanded.events, expanded.set_aside), (5, 1), "{table}");
        let sql = "select failures || ' ' || failure_sqlstate || ' ' || (expand_at > now() + interval '50 s')
                   from hookstead.outbox";
        assert_eq!(relaying.value(sql).await, "1 23514 true", "{table}");
        assert_eq!(relaying.expand().await, Expanded::default(), "it waits");
        let half_way = (1, before.1 + 5, before.2 + 5);
        assert_eq!(relaying.counts().await, half_way, "{table}");

        let sql = format!("alter table hookstead.{table} drop constraint injected");
        relaying.fixture.run(&sql).await;
        relaying
            .fixture
            .run("update hookstead.outbox set expand_at = now()")
            .await;
        let expanded = relaying.expand().await;
        assert_eq!(
            (expanded.events, expanded.duplicates),
            (1, 0),
            "{table} {round}"
        );
        relaying
            .fixture
            .run("delete from hookstead.event_keys")
            .await;
    }
}

#[tokio::test]
async fn each_failure_doubles_the_wait_up_to_an_hour() {
    let mut relaying = relaying().await;
    poison(&mut relaying, "event_keys").await;
    relaying
        .publish("'a', '{}', idempotency_key => 'poison'")
        .await;
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(relaying.expand().await.set_aside, 1);
        let sql =
            "select round(extract(epoch from expand_at - now()) / 60)::text from hookstead.outbox";
        waits.push(relaying.value(sql).await);
        relaying
            .fixture
            .run("update hookstead.outbox set expand_at = now()")
            .await;
    }
    assert_eq!(waits, ["1", "2", "4", "8", "16", "32", "60", "60"]);
}

#[tokio::test]
async fn a_payload_that_the_database_refuses_is_left_out_and_the_event_is_stored() {
    let mut relaying = relaying().await;
    relaying
        .fixture
        .run(
            "create function refuse() returns trigger language plpgsql as $$ begin
                 if new.payload ? 'odd' then raise exception using errcode = '22P05'; end if;
                 return new; end $$;
             create trigger refuse before insert on hookstead.events
                 for each row execute function refuse()",
        )
        .await;
    relaying.publish("'a', '{\"odd\": 1}'").await;
    relaying.publish("'a', '{}'").await;
    let expanded = relaying.expand().await;
    assert_eq!((expanded.events, expanded.set_aside), (2, 0));
    let sql = "select string_agg(coalesce(payload_error, 'parsed'), ' ' order by payload_error)
               from hookstead.events";
    assert_eq!(relaying.value(sql).await, "rejected_by_database parsed");
}

#[tokio::test]
async fn a_row_that_takes_too_long_is_set_aside() {
    let mut relaying = relaying().await;
    relaying
        .fixture
        .run(
            "create function stall() returns trigger language plpgsql as $$ begin
                 if new.event_type = 'slow' then raise exception using errcode = '57014'; end if;
                 return new; end $$;
             create trigger stall before insert on hookstead.events
                 for each row execute function stall()",
        )
        .await;
    relaying.publish("'slow', '{}'").await;
    relaying.publish("'quick', '{}'").await;
    let expanded = relaying.expand().await;
    assert_eq!((expanded.events, expanded.set_aside), (1, 1));
}

#[tokio::test]
async fn a_day_without_a_partition_is_nobodys_fault_and_waits_for_maintenance() {
    let mut relaying = relaying().await;
    relaying.publish("'a', '{}'").await;
    let table = "events_' || to_char(now() at time zone 'utc', 'YYYYMMDD')";
    let detach = format!(
        "do $$ begin execute 'alter table hookstead.events detach partition hookstead.{table}; end $$"
    );
    relaying.fixture.run(&detach).await;
    let error = expand_outbox(&mut relaying.relay, 10).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let sql = "select failures::text from hookstead.outbox where expand_at <= now()";
    assert_eq!(relaying.value(sql).await, "0");
    let locked = "select count(*)::text from pg_stat_activity where datname = current_database()
                  and state like 'idle in transaction%'";
    assert_eq!(relaying.value(locked).await, "0", "nothing stays locked");
}
