//! Reports, on their way to the control plane.

use hookstead_domain::{ErrorClass, Outcome, Report};
use hookstead_relay::{MAX_BATCH_REPORTS, report_lines};
use hookstead_store::relaying::{pending_reports, reporting};
use hookstead_testkit::{LogCapture, role};

use crate::control_plane::{SECRET, Script, Server, TAKEN};
use crate::world::{World, failure, run, world};

const LEFT: &str = "select count(*)::text from hookstead.reports";

/// Attempts of every outcome, each with its report. One source lets its events be named.
async fn reported(world: &mut World, count: u16) -> Vec<Report> {
    let mut relay = world.database.connect_as(role::RELAY).await;
    reporting(&mut relay, true).await.unwrap();
    world.owe(count).await;
    let gone = Outcome::Fail {
        error: ErrorClass::Gone,
    };
    let pending = world.pending().await;
    let requests: Vec<_> = pending.into_iter().map(crate::world::first).collect();
    let claimed = world.claim(&requests).await;
    for (place, one) in claimed.chunks(1).enumerate() {
        let outcome = match place % 3 {
            0 => Outcome::Success,
            1 => failure(),
            _ => gone.clone(),
        };
        world.end(one, &outcome).await;
    }
    // Their retries are none of these tests' business.
    world
        .sql("update hookstead.live_deliveries set next_attempt_at = now() + interval '1 hour'")
        .await;
    let reports = pending_reports(&mut relay, u16::MAX).await.unwrap();
    assert_eq!(reports.len(), usize::from(count));
    reports
}

#[tokio::test]
async fn what_is_sent_is_byte_for_byte_what_was_pending_and_then_it_is_gone() {
    let mut world = world().await;
    let reports = reported(&mut world, 6).await;
    let mut server = Server::start([TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let report = world.run_until_value(&relay, LEFT, "0").await;
    let received = server.next().await;
    assert_eq!(
        String::from_utf8(received.body),
        String::from_utf8(report_lines(&reports))
    );
    assert_eq!(report.shipped, 6);
    assert_eq!(report.failures, 0);
}

#[tokio::test]
async fn a_source_that_opted_in_is_named_and_no_other() {
    let mut world = world().await;
    world
        .sql("update hookstead.sources set report_event_type = true where name = 'app'")
        .await;
    // Cancelled deliveries are reported by the database itself.
    let mut relay = world.database.connect_as(role::RELAY).await;
    reporting(&mut relay, true).await.unwrap();
    world.owe(1).await;
    world
        .sql("update hookstead.subscriptions set disabled_at = now(), disabled_reason = 'operator'")
        .await;
    let mut server = Server::start([TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let mut body = Vec::new();
    run(&relay, async { body = server.next().await.body }).await;
    let line: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(line["status"], "cancelled");
    assert_eq!(line["provider"], "outbox");
    assert_eq!(line["event_type"], "thing.happened");
}

#[tokio::test]
async fn after_a_lost_answer_the_same_batch_comes_again_under_the_same_id() {
    let mut world = world().await;
    reported(&mut world, 5).await;
    let mut server = Server::start([Script::Lose, TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let report = world.run_until_value(&relay, LEFT, "0").await;
    let (first, second) = (server.next().await, server.next().await);
    assert_eq!(first.id, second.id);
    assert_eq!(first.body, second.body);
    assert_eq!((report.shipped, report.failures), (5, 1));
}

#[tokio::test]
async fn what_is_refused_is_kept_and_shipped_later_and_is_logged_once() {
    let mut world = world().await;
    reported(&mut world, 3).await;
    let refused = Script::Answer("500 Internal Server Error\r\n");
    let mut server = Server::start([refused.clone(), refused, TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let log = LogCapture::start();
    let report = world.run_until_value(&relay, LEFT, "0").await;
    assert_eq!((report.shipped, report.failures), (3, 2));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.next().await.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let lines = log.lines();
    let told: Vec<_> = lines.iter().filter(|l| l.contains("status_500")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("\"WARN\"") && log.contains("works again"));
    for canary in ["CANARY-PATH", SECRET, "127.0.0.1:"] {
        let ours = lines.iter().filter(|line| line.contains("hookstead_"));
        assert_eq!(
            ours.filter(|line| line.contains(canary)).count(),
            0,
            "{canary}"
        );
    }
}

#[tokio::test]
async fn a_refusal_that_an_operator_must_mend_is_an_error_and_loses_nothing() {
    for status in [
        "401 Unauthorized\r\n",
        "410 Gone\r\n",
        "301 Moved\r\nlocation: /\r\n",
    ] {
        let mut world = world().await;
        let reports = reported(&mut world, 2).await;
        let mut server = Server::start([Script::Answer(status)]).await;
        let relay = world.relay_with(world.queues(), Some(server.control_plane()));
        let log = LogCapture::start();
        let refused = async {
            server.next().await;
        };
        run(&relay, refused).await;
        let code = format!("\"code\":\"status_{}\"", &status[..3]);
        let lines = log.lines();
        let told = lines.iter().find(|line| line.contains(&code)).unwrap();
        assert!(told.contains("\"ERROR\"") && told.contains("\"needs_operator\":true"));
        let mut relay = world.database.connect_as(role::RELAY).await;
        assert_eq!(pending_reports(&mut relay, 10).await.unwrap(), reports);
        let sql = "select count(*)::text from hookstead.reports where taken_until is null";
        assert_eq!(world.value(sql).await, "2", "they were given back");
    }
}

#[tokio::test]
async fn retry_after_is_honoured_over_the_runs_of_a_process() {
    let mut world = world().await;
    reported(&mut world, 2).await;
    let busy = Script::Answer("429 Too Many Requests\r\nretry-after: 600\r\n");
    let mut server = Server::start([busy, TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let refused = async {
        server.next().await;
    };
    run(&relay, refused).await;
    // Another run does everything but shipping: a delivery passes, no request comes.
    world.publish(1).await;
    let queue = world.deliveries.clone();
    let passed = async {
        crate::world::requests(&queue, 1).await;
        relay.wake(hookstead_relay::Phase::Ship);
        world.publish(1).await;
        crate::world::requests(&queue, 1).await;
    };
    let report = run(&relay, passed).await;
    assert_eq!((report.shipped, report.failures), (0, 0));
    assert_eq!(world.value(LEFT).await, "2");
}

#[tokio::test]
async fn two_relays_ship_each_report_once() {
    let mut world = world().await;
    let count = MAX_BATCH_REPORTS + 60;
    let reports = reported(&mut world, count).await;
    let mut server = Server::start([TAKEN]).await;
    let relay = || world.relay_with(world.queues(), Some(server.control_plane()));
    let (one, two) = (relay(), relay());
    let (one, two) = tokio::join!(
        world.run_until_value(&one, LEFT, "0"),
        world.run_until_value(&two, LEFT, "0"),
    );
    assert_eq!(one.shipped + two.shipped, u64::from(count));
    let mut lines = Vec::new();
    while lines.len() < reports.len() {
        let body = String::from_utf8(server.next().await.body).unwrap();
        lines.extend(body.lines().map(str::to_owned));
    }
    lines.sort_unstable();
    let expected = String::from_utf8(report_lines(&reports)).unwrap();
    let mut expected: Vec<_> = expected.lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_control_plane_that_hangs_does_not_delay_what_is_due() {
    let mut world = world().await;
    reported(&mut world, 2).await;
    let mut server = Server::start([Script::Hang]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    let queue = world.deliveries.clone();
    let stop = async {
        server.next().await;
        // From here on its answer is waited for.
        world.publish(5).await;
        crate::world::requests(&queue, 5).await;
    };
    let report = run(&relay, stop).await;
    assert_eq!((report.dispatched, report.shipped), (5, 0));
}

#[tokio::test]
async fn without_a_control_plane_nothing_is_written_down_for_it() {
    let mut world = world().await;
    reported(&mut world, 2).await;
    let relay = world.relay();
    let off = "select count(*)::text from hookstead.installation where reporting_since is null";
    world.run_until_value(&relay, off, "1").await;
    assert_eq!(world.value(LEFT).await, "0");
    world.owe(1).await;
    let fresh = world.pending().await.pop().unwrap();
    let claimed = world.claim(&[crate::world::first(fresh)]).await;
    world.end(&claimed, &Outcome::Success).await;
    assert_eq!(world.value(LEFT).await, "0");

    let server = Server::start([TAKEN]).await;
    let relay = world.relay_with(world.queues(), Some(server.control_plane()));
    world.run_until_value(&relay, off, "0").await;
}
