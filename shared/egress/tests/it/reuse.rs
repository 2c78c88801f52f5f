//! Connections are used again, and their death costs nothing.

use std::time::Duration;

use hookstead_domain::ErrorClass;
use hookstead_egress::{Egress, EgressSettings};

use crate::server::{Server, Session, ok};
use crate::support::{client, http, post, settings};

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::answering(ok("fine")).await;
    let client = client();
    for _ in 0..5 {
        let answer = client.send(post(http(server.port()))).await.unwrap();
        assert_eq!(answer.status, 200);
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 5));
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let server = Server::answering(ok("fine")).await;
    let client = client();
    for _ in 0..2 {
        let send = || client.send(post(http(server.port())));
        let (first, second) = tokio::join!(send(), send());
        assert_eq!((first.unwrap().status, second.unwrap().status), (200, 200));
    }
    assert_eq!((server.connections(), server.requests().len()), (2, 4));
}

#[tokio::test]
async fn a_connection_is_not_used_for_another_name_or_after_the_idle_limit() {
    let server = Server::answering(ok("fine")).await;
    let client = client();
    let other = format!("http://other.example.com:{}/", server.port());
    client.send(post(http(server.port()))).await.unwrap();
    client.send(post(other)).await.unwrap();
    assert_eq!(server.connections(), 2);

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    client.send(post(http(server.port()))).await.unwrap();
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_busy_connection_is_replaced_in_the_end() {
    let server = Server::answering(ok("fine")).await;
    let client = client();
    for _ in 0..15 {
        client.send(post(http(server.port()))).await.unwrap();
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(25)).await;
        tokio::time::resume();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn limits_of_unused_connections_are_kept() {
    for settings in [
        EgressSettings {
            idle: Duration::ZERO,
            ..settings()
        },
        EgressSettings {
            max_idle: 0,
            ..settings()
        },
        EgressSettings {
            max_idle_per_destination: 0,
            ..settings()
        },
    ] {
        let server = Server::answering(ok("fine")).await;
        let client = Egress::new(settings).unwrap();
        client.send(post(http(server.port()))).await.unwrap();
        client.send(post(http(server.port()))).await.unwrap();
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn a_connection_that_died_between_uses_is_replaced() {
    // The first connection ends after its first answer; or only when it is used again.
    for notices_late in [false, true] {
        let server = Server::start(move |mut session: Session| async move {
            session.request().await;
            session.say(&ok("fine")).await;
            let first = session.number == 0;
            if first && notices_late {
                session.request().await;
            } else if !first {
                while session.request().await.is_some() {
                    session.say(&ok("fine")).await;
                }
            }
        })
        .await;
        let client = client();
        for _ in 0..2 {
            let answer = client.send(post(http(server.port()))).await.unwrap();
            assert_eq!(answer.status, 200);
        }
        assert_eq!(server.connections(), 2);
        let requests = server.requests();
        assert_eq!(requests.len(), if notices_late { 3 } else { 2 });
        assert_eq!(requests.first(), requests.last(), "the same bytes again");
    }
}

#[tokio::test]
async fn a_request_is_repeated_only_where_nothing_was_answered_and_only_once() {
    // Each connection answers one request, and of every further one only a part.
    let server = Server::start(|mut session: Session| async move {
        session.request().await;
        session.say(&ok("fine")).await;
        session.request().await;
        session.say(b"HTTP/1.1 200 OK\r\n").await;
    })
    .await;
    let client = client();
    client.send(post(http(server.port()))).await.unwrap();
    let failure = client.send(post(http(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ConnectionReset);
    assert_eq!((server.connections(), server.requests().len()), (1, 2));

    // Nobody answers anything: a fresh connection is not replaced.
    let server = Server::start(|mut session: Session| async move {
        session.request().await;
    })
    .await;
    let failure = client.send(post(http(server.port()))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ConnectionReset);
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
}
