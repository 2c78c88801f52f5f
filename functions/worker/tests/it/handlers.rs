//! Handlers: one transaction with the end of the delivery.

use hookstead_testkit::LogCapture;
use serde_json::json;

use crate::notes::{Notes, handlers, notes_in, world};

#[tokio::test]
async fn what_a_handler_writes_commits_with_the_end_of_its_delivery() {
    let world = world().await;
    world.event(b"{}").await;
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    assert_eq!(notes_in(&world).await, 1);
    let row = world.only().await;
    assert_eq!((row.state.as_str(), row.attempt_count), ("succeeded", 1));
    assert_eq!(world.attempts(row.delivery_id).await[0].outcome, "success");
    let together = "select count(*) from public.notes n
         join hookstead.done_deliveries d on d.delivery_id::text = n.note and d.xmin = n.xmin";
    assert_eq!(world.number(together).await, 1, "by one transaction");
}

#[tokio::test]
async fn every_other_verdict_keeps_nothing_of_what_was_written() {
    for (word, state, reason, class, detail) in [
        ("skip", "skipped", Some("not_mine"), None, None),
        ("defer", "pending", Some("too_early"), None, None),
        (
            "fail",
            "dead_letter",
            Some("permanent_failure"),
            Some("handler_failed"),
            Some("broken_invoice"),
        ),
        (
            "retry",
            "pending",
            None,
            Some("handler_retry"),
            Some("handler_retry"),
        ),
        (
            "panic",
            "pending",
            None,
            Some("handler_panicked"),
            Some("panic"),
        ),
        (
            "break",
            "pending",
            None,
            Some("handler_retry"),
            Some("sqlstate_23502"),
        ),
        (
            "swallow",
            "pending",
            None,
            Some("handler_retry"),
            Some("sqlstate_25P02"),
        ),
    ] {
        let world = world().await;
        let logs = LogCapture::start();
        world
            .event(json!({"do": word}).to_string().as_bytes())
            .await;
        world
            .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
            .await;
        assert_eq!(notes_in(&world).await, 0, "{word}");
        let row = world.only().await;
        assert_eq!(
            (row.state.as_str(), row.state_reason.as_deref()),
            (state, reason),
            "{word}"
        );
        assert_eq!(row.last_error_class.as_deref(), class, "{word}");
        let attempt = world.attempts(row.delivery_id).await.remove(0);
        assert_eq!(attempt.error_detail.as_deref(), detail, "{word}");
        assert!(!logs.contains("CANARY"), "{}", logs.text());
    }
}

#[tokio::test]
async fn one_handler_of_a_batch_panics_and_the_others_are_done() {
    let world = world().await;
    for word in ["done", "panic", "done", "fail", "done"] {
        world
            .event(json!({"do": word}).to_string().as_bytes())
            .await;
    }
    world
        .work(&world.worker_with(handlers(&Notes::default()), |_| {}))
        .await;
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (3, 3)
    );
}

#[tokio::test]
async fn four_workers_and_repeated_messages_have_one_effect_each() {
    let world = world().await;
    for _ in 0..20 {
        world.event(b"{}").await;
    }
    let messages = world.messages().await;
    let notes = Notes::default();
    let running = (0..4).map(|_| {
        let worker = world.worker_with(handlers(&notes), |_| {});
        let messages = messages.clone();
        tokio::spawn(async move {
            for batch in messages.chunks(10).chain(messages.chunks(7)) {
                assert_eq!(
                    worker.process(batch.to_vec()).await.failures,
                    Vec::<String>::new()
                );
            }
        })
    });
    futures::future::try_join_all(running).await.unwrap();
    assert_eq!(
        (notes_in(&world).await, world.ended("succeeded").await),
        (20, 20)
    );
}

#[tokio::test]
async fn a_handler_that_is_not_there_is_missing_and_nobody_s_fault() {
    let world = world().await;
    world.event(b"{}").await;
    world.work(&world.worker()).await;
    let row = world.only().await;
    assert_eq!(row.last_error_class.as_deref(), Some("handler_missing"));
    let failures = "select consecutive_failures::bigint from hookstead.subscriptions";
    assert_eq!(world.number(failures).await, 0);
}

#[tokio::test]
async fn two_handlers_of_one_name_are_refused() {
    let taken = handlers(&Notes::default()).register("notes", Notes::default());
    assert_eq!(taken.unwrap_err().0, "notes");
}
