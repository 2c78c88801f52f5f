//! What is the same event, and what is not.

use futures::future::join_all;
use hookstead_secrets::VersionLabel;

use crate::world::{
    KEY, World, acme, code, custom_source, event_id, github, hmac_hex, is_duplicate, post, source,
    stripe, subscription,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sto_05_fifty_copies_at_once_are_one_event_and_one_delivery() {
    let world = World::with_all(
        vec![source("github", "github")],
        vec![subscription("everything")],
    )
    .await;
    let processes: Vec<_> = (0..5).map(|_| world.another_receiver()).collect();
    let copies = (0..50).map(|n| processes[n % 5].handle(github("same-id", b"{\"a\":1}")));
    let answers = join_all(copies).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let first_hand = answers
        .iter()
        .filter(|answer| !is_duplicate(answer))
        .count();
    assert_eq!(first_hand, 1);
    let mut ids: Vec<String> = answers.iter().map(event_id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "everybody is told the same id");
    assert_eq!(world.rows().await, 3, "one key, one event, one delivery");
}

#[tokio::test]
async fn sto_06_a_repeated_delivery_is_answered_with_the_first_ones_id() {
    let world = World::github().await;
    let first = world.send(github("d-1", b"{}")).await;
    let second = world.send(github("d-1", b"{}")).await;
    assert_eq!((first.status, second.status), (200, 200));
    assert!(!is_duplicate(&first) && is_duplicate(&second));
    assert_eq!(event_id(&first), event_id(&second));
    assert_eq!(world.rows().await, 2);
}

#[tokio::test]
async fn sto_07_the_same_id_at_two_sources_is_two_events() {
    let mut of_another_tenant = custom_source("tenant-b");
    of_another_tenant.tenant = Some("b".to_owned());
    let sources = vec![
        custom_source("acme"),
        custom_source("acme-two"),
        of_another_tenant,
        source("github", "github"),
    ];
    let world = World::with(sources).await;
    let now = world.clock.now_s();
    for name in ["acme", "acme-two", "tenant-b"] {
        let mut request = acme(now, "id-1", b"{}");
        request.path = format!("/webhooks/{name}");
        let answer = world.send(request).await;
        assert!(answer.status == 200 && !is_duplicate(&answer), "{name}");
    }
    assert!(!is_duplicate(&world.send(github("id-1", b"{}")).await));
    assert_eq!(world.events().await.len(), 4);
    let tenants = "select count(*) from hookstead.events where tenant = 'b'";
    assert_eq!(world.number(tenants).await, 1);
}

#[tokio::test]
async fn sto_08_blank_ids_never_swallow_another_event() {
    let world = World::with(vec![source("stripe", "stripe"), source("github", "github")]).await;
    let now = world.clock.now_s();
    let mut sent = 0;
    for id in [
        "",
        r#""id":"","#,
        r#""id":null,"#,
        r#""id":"   ","#,
        r#""id":0,"#,
        r#""id":{},"#,
    ] {
        for n in 1..=2 {
            let body = format!("{{{id}\"type\":\"t\",\"n\":{n}}}");
            let answer = world.send(stripe(now, body.as_bytes())).await;
            assert!(answer.status == 200 && !is_duplicate(&answer), "{body}");
            sent += 1;
        }
    }
    for id in ["", " ", "   "] {
        for body in [&b"{\"n\":1}"[..], b"{\"n\":2}"] {
            let mut request = github("", body);
            request.headers.push("X-GitHub-Delivery", id);
            let answer = world.send(request).await;
            assert!(answer.status == 200 && !is_duplicate(&answer));
            sent += 1;
        }
    }
    assert_eq!(world.events().await.len(), sent);
}

#[tokio::test]
async fn without_an_id_the_signed_text_tells_a_repeat_where_it_carries_a_time() {
    let world = World::with(vec![source("stripe", "stripe"), source("github", "github")]).await;
    let now = world.clock.now_s();
    let body = br#"{"type":"no.id"}"#;
    assert!(!is_duplicate(&world.send(stripe(now, body)).await));
    assert!(
        is_duplicate(&world.send(stripe(now, body)).await),
        "the same request again"
    );
    assert!(
        !is_duplicate(&world.send(stripe(now - 1, body)).await),
        "signed anew"
    );
    assert!(!is_duplicate(&world.send(github("", body)).await));
    assert!(
        !is_duplicate(&world.send(github("", body)).await),
        "nothing tells them apart"
    );
}

#[tokio::test]
async fn a_source_may_say_what_makes_an_event() {
    let rule = |name: &str, rule: &str| {
        let mut source = custom_source(name);
        source.dedupe_rule = Some(rule.to_owned());
        source
    };
    let world = World::with(vec![
        rule("by-field", "body:$.key"),
        rule("every", "every-arrival"),
        rule("by-body", "equal-body"),
        rule("broken", "nonsense"),
    ])
    .await;
    let now = world.clock.now_s();
    let send = async |name: &str, id: &str, body: &[u8]| {
        let mut request = acme(now, id, body);
        request.path = format!("/webhooks/{name}");
        world.send(request).await
    };
    assert!(!is_duplicate(
        &send("by-field", "a", br#"{"key":1,"n":1}"#).await
    ));
    assert!(is_duplicate(
        &send("by-field", "b", br#"{"key":1,"n":2}"#).await
    ));
    assert!(!is_duplicate(&send("every", "a", b"{}").await));
    assert!(!is_duplicate(&send("every", "a", b"{}").await));
    assert!(!is_duplicate(&send("by-body", "a", b"{}").await));
    assert!(is_duplicate(&send("by-body", "b", b"{}").await));
    let broken = send("broken", "a", b"{}").await;
    assert_eq!((broken.status, code(&broken).as_str()), (500, "internal"));
}

#[tokio::test]
async fn sto_09_a_failed_step_leaves_no_trace_and_the_retry_is_stored() {
    let world = World::with_all(
        vec![source("github", "github")],
        vec![subscription("everything")],
    )
    .await;
    for table in ["event_keys", "events", "live_deliveries"] {
        let constraint = format!("{table}_refuse_all");
        world
            .execute(&format!(
                "alter table hookstead.{table} add constraint {constraint} check (false) not valid"
            ))
            .await;
        let refused = world.send(github("d-1", b"{}")).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (503, "store_unavailable"),
            "{table}"
        );
        assert!(refused.header("retry-after").is_some());
        assert_eq!(world.rows().await, 0, "{table}");
        world
            .execute(&format!(
                "alter table hookstead.{table} drop constraint {constraint}"
            ))
            .await;
    }
    let retried = world.send(github("d-1", b"{}")).await;
    assert!(retried.status == 200 && !is_duplicate(&retried));
    assert_eq!(world.rows().await, 3);
}

#[tokio::test]
async fn sto_10_a_repeat_after_days_is_still_a_repeat() {
    let world = World::github().await;
    for hours in [0, 29, 42] {
        world.clock.advance_s(hours * 3600);
        let answer = world.send(github("d-1", b"{}")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(is_duplicate(&answer), hours > 0);
    }
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn a_very_long_id_is_a_key_all_the_same() {
    let world = World::github().await;
    let long = "é".repeat(4_000);
    assert!(!is_duplicate(&world.send(github(&long, b"{}")).await));
    assert!(is_duplicate(&world.send(github(&long, b"{}")).await));
    assert!(!is_duplicate(
        &world.send(github(&format!("{long}x"), b"{}")).await
    ));
}

#[tokio::test]
async fn a_composite_key_needs_all_its_parts() {
    let world = World::with(vec![source("postmark", "postmark")]).await;
    world
        .secrets
        .set("test:postmark", &[(VersionLabel::Current, "user:pass")]);
    let send = async |body: &str| {
        let basic = [("Authorization", "Basic dXNlcjpwYXNz")];
        let answer = world.send(post("postmark", &basic, body.as_bytes())).await;
        assert_eq!(answer.status, 200);
        is_duplicate(&answer)
    };
    assert!(!send(r#"{"MessageID":"m-1","RecordType":"Delivery","Recipient":"a"}"#).await);
    assert!(!send(r#"{"MessageID":"m-1","RecordType":"Open","Recipient":"a"}"#).await);
    assert!(send(r#"{"MessageID":"m-1","RecordType":"Open","Recipient":"a"}"#).await);
    // A secret of another length is still only a mismatch.
    let wrong = [("Authorization", format!("Basic {}", hmac_hex(KEY, b"x")))];
    let wrong: Vec<(&str, &str)> = wrong.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(
        world.send(post("postmark", &wrong, b"{}")).await.status,
        401
    );
}
