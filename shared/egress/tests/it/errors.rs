//! OUT-09 and OUT-10: what goes wrong has its own name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hookstead_domain::ErrorClass;
use hookstead_egress::{DETAILS, Egress, EgressSettings, Resolver, Resolving, SendFailure};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::server::{Server, Session, resetting};
use crate::support::{Scripted, client, http, post, settings};

/// What a send to this server fails with.
async fn failure(server: &Server) -> SendFailure {
    let failure = client().send(post(http(server.port()))).await.unwrap_err();
    assert!(DETAILS.iter().any(|(code, _)| *code == failure.detail));
    failure
}

/// What comes of one answer after which the connection is closed.
async fn failure_of(answer: &'static [u8]) -> SendFailure {
    let server = Server::start(move |mut session| async move {
        session.request().await;
        session.say(answer).await;
    });
    failure(&server.await).await
}

/// A listener that nothing serves yet.
async fn bound() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

struct Silent;

impl Resolver for Silent {
    fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn out_09_a_name_without_address_is_a_dns_failure() {
    for answers in [&[][..], &[&[][..]]] {
        let mut settings = settings();
        settings.resolver = Scripted::new(answers);
        let client = Egress::new(settings).unwrap();
        let failure = client.send(post(http(80))).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::DnsFailure);
    }
}

#[tokio::test]
async fn out_09_a_closed_port_is_refused() {
    let (listener, port) = bound().await;
    drop(listener);
    let failure = client().send(post(http(port))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ConnectionRefused);
    assert_eq!(failure.status, None);
}

#[tokio::test]
async fn out_09_an_address_without_a_way_to_it_is_unreachable() {
    let client = Egress::new(EgressSettings {
        allowed: "255.255.255.255".parse().unwrap(),
        ..settings()
    });
    let request = post("http://255.255.255.255/");
    let failure = client.unwrap().send(request).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Unreachable);
}

#[tokio::test]
async fn an_address_that_fails_gives_way_to_the_next() {
    let server = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut settings = settings();
    settings.allowed = "127.0.0.0/8,255.255.255.255".parse().unwrap();
    settings.resolver = Scripted::new(&[&["255.255.255.255", "127.0.0.3", "127.0.0.1"]]);
    let client = Egress::new(settings).unwrap();
    let answer = client.send(post(http(server.port()))).await.unwrap();
    assert_eq!(answer.status, 204);
}

/// Connections that fill the queue of a listener: whoever dials it now waits.
async fn filled(address: SocketAddr) -> (TcpListener, Vec<JoinHandle<()>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    for _ in 0..2 {
        let stream = TcpStream::connect(address).await.unwrap();
        held.push(tokio::spawn(async move {
            let _stream = stream;
            std::future::pending::<()>().await;
        }));
    }
    (listener, held)
}

#[tokio::test]
async fn an_address_that_is_silent_gives_way_to_the_next() {
    let server = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let (_full, _held) = filled(SocketAddr::from(([127, 0, 0, 2], server.port()))).await;
    let mut settings = settings();
    settings.allowed = "127.0.0.0/8".parse().unwrap();
    settings.resolver = Scripted::new(&[&["127.0.0.2", "127.0.0.1"]]);
    let client = Egress::new(settings).unwrap();
    let answer = client.send(post(http(server.port()))).await.unwrap();
    assert_eq!(answer.status, 204);
}

#[tokio::test]
async fn out_09_an_address_that_is_silent_is_a_timeout() {
    let (full, _held) = filled(SocketAddr::from(([127, 0, 0, 1], 0))).await;
    let mut request = post(http(full.local_addr().unwrap().port()));
    request.deadline = Duration::from_millis(300);
    let failure = client().send(request).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout);
    assert_eq!(failure.detail, "timeout_connect");
}

#[tokio::test]
async fn of_several_failures_the_one_that_says_more_is_told() {
    let (listener, port) = bound().await;
    drop(listener);
    let mut settings = settings();
    settings.allowed = "127.0.0.1,255.255.255.255".parse().unwrap();
    settings.resolver = Scripted::new(&[&["127.0.0.1", "255.255.255.255"]]);
    let client = Egress::new(settings).unwrap();
    let failure = client.send(post(http(port))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ConnectionRefused);
}

#[tokio::test]
async fn out_09_a_reset_before_and_after_the_head_is_a_reset() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart";
    for (first, status) in [(&b""[..], None), (&head[..], Some(200))] {
        let (listener, port) = bound().await;
        tokio::spawn(resetting(listener, first));
        let failure = client().send(post(http(port))).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::ConnectionReset);
        // A reset may overtake what was said before it.
        assert!(failure.status.is_none() || failure.status == status);
    }
}

#[tokio::test]
async fn out_09_an_end_before_the_head_is_complete_is_a_reset() {
    for head in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-le"] {
        assert_eq!(failure_of(head).await.class, ErrorClass::ConnectionReset);
    }
}

#[tokio::test]
async fn out_09_an_end_within_the_body_is_a_truncated_body() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\npart",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n",
    ] {
        let failure = failure_of(answer).await;
        assert_eq!(failure.class, ErrorClass::TruncatedBody);
        assert_eq!(failure.status, Some(200));
    }
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    let server = Server::start(|mut session: Session| async move {
        session.request().await;
        session.say(b"HTTP/1.1 200 OK\r\n\r\nall of it").await;
    })
    .await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    assert_eq!(&answer.body_prefix[..], b"all of it");
}

#[tokio::test(start_paused = true)]
async fn out_09_a_resolver_that_never_answers_is_a_timeout() {
    let mut settings = settings();
    settings.resolver = Arc::new(Silent);
    let client = Egress::new(settings).unwrap();
    let failure = client.send(post(http(80))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout);
    assert_eq!(failure.detail, "timeout_dns");
    assert_eq!(failure.latency_ms, 60_000);
}

#[tokio::test]
async fn out_09_no_answer_and_half_an_answer_are_timeouts() {
    for said in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
    ] {
        let server = Server::start(move |mut session| async move {
            session.request().await;
            session.say(said).await;
            session.hang().await;
        })
        .await;
        let mut request = post(http(server.port()));
        request.deadline = Duration::from_millis(300);
        let failure = client().send(request).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Timeout);
    }
}

#[tokio::test]
async fn out_09_tls_that_never_answers_is_a_timeout() {
    let server = Server::start(Session::hang).await;
    let mut request = post(crate::support::https(server.port()));
    request.deadline = Duration::from_millis(300);
    let failure = client().send(request).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout);
}

#[tokio::test]
async fn out_10_what_is_not_http_is_an_invalid_response() {
    for garbage in [
        &b"HELLO\r\n\r\n"[..],
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        let failure = failure_of(garbage).await;
        let text = String::from_utf8_lossy(garbage);
        assert_eq!(failure.class, ErrorClass::InvalidResponse, "{text}");
    }
}

#[tokio::test]
async fn out_10_every_status_comes_through_as_it_stood_on_the_wire() {
    for status in [
        200, 201, 202, 204, 206, 301, 304, 400, 404, 408, 410, 425, 429, 500, 503, 999,
    ] {
        let server = Server::answering(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"));
        let server = server.await;
        let answer = client().send(post(http(server.port()))).await.unwrap();
        assert_eq!(answer.status, status);
        let now = time::OffsetDateTime::UNIX_EPOCH;
        let success = (200..300).contains(&status);
        assert_eq!(answer.outcome(now).error().is_none(), success, "{status}");
        assert_eq!(answer.disables_subscription(), status == 410);
        assert_eq!(answer.recorded_status().is_some(), status != 999);
    }
}

#[tokio::test]
async fn interim_answers_are_passed_over_and_a_switch_of_protocols_is_no_success() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    let server = Server::answering(interim).await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    assert_eq!(answer.status, 204);

    let switch = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    let server = Server::answering(switch).await;
    let client = client();
    for round in 1..=2 {
        let answer = client.send(post(http(server.port()))).await.unwrap();
        assert_eq!(answer.status, 101);
        assert_eq!(server.connections(), round, "it is not used again");
    }
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let closed = std::sync::Mutex::new(Some(closed));
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    let arrived = std::sync::Mutex::new(Some(arrived));
    let server = Server::start(move |mut session: Session| {
        let (arrived, closed) = (
            arrived.lock().unwrap().take(),
            closed.lock().unwrap().take(),
        );
        async move {
            session.request().await;
            arrived.unwrap().send(()).unwrap();
            session.request().await;
            closed.unwrap().send(()).unwrap();
        }
    })
    .await;
    let client = client();
    let sending = tokio::spawn(async move { client.send(post(http(server.port()))).await });
    has_arrived.await.unwrap();
    sending.abort();
    is_closed.await.unwrap();
}

#[tokio::test]
async fn a_request_that_took_too_long_is_not_written_to_its_end() {
    const BODY_BYTES: usize = 32 * 1024 * 1024;
    let (listener, port) = bound().await;
    let mut request = post(http(port));
    request.body = vec![b'x'; BODY_BYTES].into();
    request.deadline = Duration::from_millis(300);
    let client = client();
    let (sent, accepted) = tokio::join!(client.send(request), listener.accept());
    assert_eq!(sent.unwrap_err().class, ErrorClass::Timeout);
    // Only now does the server read; what it gets is what the kernels held.
    let (mut stream, _) = accepted.unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap_or_default();
    assert!(read.len() < BODY_BYTES, "{} bytes came", read.len());
}
