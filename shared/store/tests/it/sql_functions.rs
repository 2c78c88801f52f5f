//! The SQL functions agree with the Rust ones and keep their promises.

use hookstead_domain::{DeliveryId, EventId, EventTypePattern, SubscriptionId};
use sqlx::PgConnection;
use time::macros::date;
use time::{Duration, OffsetDateTime, Time};
use uuid::Uuid;

use crate::support::fixture;

#[tokio::test]
async fn sql_and_rust_derive_the_same_delivery_id() {
    let mut fixture = fixture().await;
    let ids: Vec<(Uuid, Uuid, Uuid)> = sqlx::query_as(
        "select e, s, hookstead.delivery_id(e, s)
         from (select gen_random_uuid() e, gen_random_uuid() s from generate_series(1, 500)) x",
    )
    .fetch_all(&mut fixture.admin)
    .await
    .unwrap();
    assert_eq!(ids.len(), 500);
    for (event, subscription, delivery) in ids {
        let ours = DeliveryId::derive(
            EventId::from_uuid(event),
            SubscriptionId::from_uuid(subscription),
        );
        assert_eq!(ours.as_uuid(), delivery, "{event} {subscription}");
    }
}

#[tokio::test]
async fn a_day_starts_at_its_first_id() {
    let mut fixture = fixture().await;
    for day in [
        date!(1970 - 01 - 02),
        date!(2026 - 11 - 30),
        date!(2100 - 02 - 28),
    ] {
        let start: Uuid = sqlx::query_scalar("select hookstead.day_start_id($1)")
            .bind(day)
            .fetch_one(&mut fixture.admin)
            .await
            .unwrap();
        let midnight = OffsetDateTime::new_utc(day, Time::MIDNIGHT);
        let at = |time: OffsetDateTime, random| {
            let ms = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap();
            EventId::new(ms, random).as_uuid()
        };
        assert!(at(midnight, [0; 10]) >= start, "{day}");
        assert!(
            at(midnight - Duration::milliseconds(1), [255; 10]) < start,
            "{day}"
        );
    }
}

#[tokio::test]
async fn patterns_match_in_sql_as_they_do_in_rust() {
    let mut fixture = fixture().await;
    let patterns = [
        "a", "a*", "*a", "*", "a*b", "a.b_c", "a%b", "%", "_", "a\\b", "\\", "\\*", "*_*", "a**b",
        "é*",
    ];
    let types = [
        "a", "ab", "ba", "aXb", "a.b_c", "a.bXc", "a%b", "a\\b", "\\", "\\x", "_", "é1", "A", "",
    ];
    for pattern in patterns {
        let ours: EventTypePattern = pattern.parse().unwrap();
        for event_type in types {
            let theirs: bool =
                sqlx::query_scalar("select $1 like any (hookstead.like_patterns(array[$2]))")
                    .bind(event_type)
                    .bind(pattern)
                    .fetch_one(&mut fixture.admin)
                    .await
                    .unwrap();
            assert_eq!(
                ours.matches(event_type),
                theirs,
                "{pattern:?} on {event_type:?}"
            );
        }
    }
}

async fn filter(connection: &mut PgConnection, path: &str, payload: &str) -> Option<i32> {
    sqlx::query_scalar("select hookstead.filter_match_us($1::text::jsonpath, $2::text::jsonb)")
        .bind(path)
        .bind(payload)
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_filter_never_raises_and_matches_by_its_first_item() {
    let mut fixture = fixture().await;
    let payload = r#"{"x": 2, "t": true, "f": false, "n": null, "s": "2026-01-01", "a": [0, 1]}"#;
    for matching in [
        "$",
        "$.x",
        "$ ? (@.x > 1)",
        "$.x > 1",
        "$.t",
        "$.a[*] ? (@ > 0)",
        "$.a[0]",
        "exists($.n)",
    ] {
        assert!(
            filter(&mut fixture.admin, matching, payload)
                .await
                .is_some(),
            "{matching}"
        );
    }
    for not in [
        "$.missing",
        "$.f",
        "$.n",
        "$.x > 2",
        "$ ? (@.x > 2)",
        "$.x / 0",
        "strict $.missing",
        "$.s.double()",
        "$.x.keyvalue()",
        "$.s.datetime(\"HH24\")",
        "$.s.datetime() < \"x\".datetime()",
        "$.s < 1",
    ] {
        assert_eq!(
            filter(&mut fixture.admin, not, payload).await,
            None,
            "{not}"
        );
    }
    let no_filter: Option<i32> = sqlx::query_scalar("select hookstead.filter_match_us(null, '{}')")
        .fetch_one(&mut fixture.admin)
        .await
        .unwrap();
    assert_eq!(no_filter, Some(0));
    let no_payload: Option<i32> = sqlx::query_scalar("select hookstead.filter_match_us('$', null)")
        .fetch_one(&mut fixture.admin)
        .await
        .unwrap();
    assert_eq!(no_payload, None);
}

#[tokio::test]
async fn a_retry_policy_is_all_of_its_keys_within_their_limits() {
    let mut fixture = fixture().await;
    let good = r#"{"schedule_s":[5,0.5],"jitter":0.2,"timeout_ms":1000,"max_age_s":60,"give_up_after_identical":5}"#;
    let is_policy = "select hookstead.is_retry_policy($1::text::jsonb)";
    let cases = [
        (good.to_owned(), true),
        (good.replace(":5}", ":null}"), true),
        (good.replace("[5,0.5]", "[]"), true),
        ("{}".to_owned(), false),
        ("[]".to_owned(), false),
        ("null".to_owned(), false),
        (good.replace("jitter", "giggle"), false),
        (good.replace(":5}", ":5,\"more\":1}"), false),
        (good.replace(":0.2", ":1.2"), false),
        (good.replace(":1000", ":0"), false),
        (good.replace(":60", ":-1"), false),
        (good.replace("[5,0.5]", "[-1]"), false),
        (good.replace("[5,0.5]", "[\"5\"]"), false),
        (good.replace("[5,0.5]", "[[5]]"), false),
        (good.replace("[5,0.5]", "5"), false),
        (good.replace(":5}", ":\"5\"}"), false),
    ];
    for (policy, expected) in cases {
        let is: Option<bool> = sqlx::query_scalar(is_policy)
            .bind(&policy)
            .fetch_one(&mut fixture.admin)
            .await
            .unwrap();
        assert_eq!(is, Some(expected), "{policy}");
    }
}

/// Rows that have no policy of their own mean this one, those of years ago as well.
#[tokio::test]
async fn the_default_retry_policy_is_what_it_always_was() {
    let mut fixture = fixture().await;
    let (default, is_policy): (serde_json::Value, bool) = sqlx::query_as(
        "select p, hookstead.is_retry_policy(p) from hookstead.default_retry_policy() p",
    )
    .fetch_one(&mut fixture.admin)
    .await
    .unwrap();
    let expected = serde_json::json!({
        "schedule_s": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
        "jitter": 0.2,
        "timeout_ms": 15000,
        "max_age_s": 432_000,
        "give_up_after_identical": 5,
    });
    assert_eq!(default, expected);
    assert!(is_policy);
}
