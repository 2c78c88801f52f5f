//! Deliveries, their attempts and reports.

use hookstead_testkit::role;
use serde_json::Value;

use crate::owed::{NAMES, Owed};

#[tokio::test]
async fn deliveries_are_listed_by_state_subscription_and_event() {
    let owed = Owed::new().await;
    assert_eq!(owed.names(&["deliveries"]).await, NAMES);
    assert_eq!(
        owed.names(&["deliveries", "--state", "pending"]).await,
        ["b-waits"]
    );
    let over = [
        "deliveries",
        "--state",
        "succeeded",
        "--state",
        "dead_letter",
    ];
    assert_eq!(owed.names(&over).await, ["a-has-it", "c-gave-up"]);
    let one = ["deliveries", "list", "--subscription", "c-gave-up"];
    assert_eq!(owed.names(&one).await, ["c-gave-up"]);
    let event = owed.event.to_string();
    assert_eq!(owed.names(&["deliveries", "--event", &event]).await, NAMES);
    assert_eq!(owed.names(&["deliveries", "--event", "last"]).await, NAMES);
    assert_eq!(
        owed.names(&["deliveries", "--since", "1h", "--limit", "2"])
            .await
            .len(),
        2
    );
    let table = owed.run(&["deliveries"]).await.out;
    assert!(
        table.contains("gone: gone") && table.contains("1/10"),
        "{table}"
    );
    let shown = owed.run(&["events", "show", "last"]).await.out;
    assert!(
        shown.contains("dead_letter") && shown.contains("gone"),
        "{shown}"
    );
    for (arguments, code, exit) in [
        (
            &["deliveries", "--subscription", "nobody"][..],
            "unknown_subscription",
            2,
        ),
        (
            &["deliveries", "show", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
        (
            &["attempts", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
        (
            &["report", "show", "00000000-0000-0000-0000-000000000000"],
            "delivery_not_found",
            1,
        ),
    ] {
        let refused = owed.run(arguments).await;
        assert_eq!(refused.code, exit, "{refused:?}");
        assert!(
            refused.err.contains(&format!("error[{code}]")),
            "{refused:?}"
        );
    }
    for wrong in [&["deliveries", "--state", "done"][..], &["attempts", "x"]] {
        assert_eq!(owed.run(wrong).await.code, 2);
    }
}

#[tokio::test]
async fn one_delivery_and_its_attempts_are_shown_and_never_a_payload() {
    let mut owed = Owed::new().await;
    let delivery = owed.delivery(2).await.to_string();
    let shown = owed
        .run(&["deliveries", "show", &delivery, "--json"])
        .await
        .json();
    assert_eq!(shown["subscription"], "c-gave-up");
    assert_eq!(shown["rounds"][0]["state_reason"], "gone");
    assert_eq!(shown["attempts"][0]["error_class"], "gone");
    let text = owed.run(&["deliveries", "show", &delivery]).await.out;
    assert!(
        text.contains("dead_letter since") && text.contains("7 ms"),
        "{text}"
    );
    let attempts = owed.run(&["attempts", &delivery, "--json"]).await.json();
    assert_eq!(attempts, shown["attempts"]);
    assert!(
        owed.run(&["attempts", &delivery])
            .await
            .out
            .contains("7 ms")
    );
    let waits = owed.delivery(1).await.to_string();
    let text = owed.run(&["deliveries", "show", &waits]).await.out;
    assert!(text.contains("pending, due "), "{text}");
    for output in [text, shown.to_string(), attempts.to_string()] {
        assert!(!output.contains("CANARY"), "{output}");
    }
}

#[tokio::test]
async fn a_report_is_printed_as_the_bytes_that_are_sent() {
    let mut owed = Owed::new().await;
    let delivery = owed.delivery(2).await;
    let text = delivery.to_string();
    let shown = owed.run(&["report", "show", &text]).await;
    let mut admin = owed.database.connect_as(role::ADMIN).await;
    let reports = hookstead_store::relaying::reports_of(&mut admin, delivery)
        .await
        .unwrap();
    assert_eq!(reports.len(), 1);
    let expected = format!("{}\n", serde_json::to_string(&reports[0]).unwrap());
    assert_eq!(String::from_utf8(shown.bytes).unwrap(), expected);
    let array = owed.run(&["report", "show", &text, "--json"]).await.json();
    assert_eq!(array[0]["job_id"], text);
    // Nothing waits: these attempts were not written by a worker.
    let pending = owed.run(&["report", "show", "--pending"]).await;
    assert_eq!((pending.code, pending.out.as_str()), (0, ""));
    owed.run_sql(&format!(
        "insert into hookstead.reports (
             report_id, schema_version, instance_id, job_id, status, attempt_count, processed_at)
         select gen_random_uuid(), 1, instance_id, '{text}', 'dead_letter', 1, now()
         from hookstead.installation"
    ))
    .await;
    let pending = owed.run(&["report", "show"]).await;
    let line: Value = serde_json::from_str(&pending.out).unwrap();
    assert_eq!(
        (&line["job_id"], &line["status"]),
        (&text.into(), &"dead_letter".into())
    );
}
