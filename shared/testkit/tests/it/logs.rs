//! Catching logs.

use hookstead_testkit::LogCapture;

#[tokio::test]
async fn fields_messages_and_spans_of_every_level_are_caught() {
    let logs = LogCapture::start();
    let span = tracing::trace_span!("outer", hidden = "CANARY1");
    span.in_scope(|| tracing::trace!(field = "CANARY2", "message CANARY3"));
    for canary in ["CANARY1", "CANARY2", "CANARY3"] {
        assert!(logs.contains(canary), "{}", logs.text());
    }
    assert_eq!(logs.lines().len(), 1);
}

#[tokio::test]
async fn nothing_is_caught_after_the_end() {
    let first = LogCapture::start();
    drop(first);
    let second = LogCapture::start();
    tracing::info!("one line");
    assert_eq!(second.lines().len(), 1);
}
