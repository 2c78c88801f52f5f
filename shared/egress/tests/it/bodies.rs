//! OUT-12: large and endless answers.

use std::sync::{Arc, Mutex};

use hookstead_egress::{MAX_BODY_BYTES, MAX_PREFIX_BYTES};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use crate::server::{Server, Session, ok};
use crate::support::{client, http, post};

/// What the two kernels may hold beyond what was read: their buffers, which both ends
/// set to be small, doubled and rounded up by the kernel.
const IN_KERNELS: usize = 1024 * 1024;

/// What the client reads at most: the body, and as much again for everything else.
const READ: usize = 2 * MAX_BODY_BYTES;

/// A server that says `head` and then bytes of `filling` for ever, or up to `at_most`.
async fn pouring(
    head: &'static [u8],
    filling: &'static [u8],
    at_most: usize,
) -> (Server, oneshot::Receiver<usize>) {
    let (sender, receiver) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let server = Server::start(move |mut session: Session| {
        let sender = sender.lock().unwrap().take().unwrap();
        async move {
            session.request().await;
            session.say(head).await;
            sender
                .send(session.say_until_closed(filling, at_most).await)
                .unwrap();
        }
    });
    (server.await, receiver)
}

#[tokio::test]
async fn out_12_a_body_of_50_mb_is_a_success_of_which_little_is_read() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 52428800\r\n\r\n";
    let (server, taken) = pouring(head, &[b'x'; 65536], 52_428_800).await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.body_cut);
    assert_eq!(answer.body_bytes, MAX_BODY_BYTES);
    assert_eq!(answer.body_prefix.len(), MAX_PREFIX_BYTES);
    let expected: [u8; 32] = Sha256::digest(vec![b'x'; MAX_BODY_BYTES]).into();
    assert_eq!(answer.body_sha256, expected);
    let taken = taken.await.unwrap();
    assert!(taken < READ + IN_KERNELS, "{taken} bytes were taken");
}

#[tokio::test]
async fn out_12_an_endless_stream_is_cut_and_changes_nothing() {
    for head in [
        &b"HTTP/1.1 202 Accepted\r\n\r\n"[..],
        b"HTTP/1.1 202 Accepted\r\ncontent-length: 9223372036854775807\r\n\r\n",
    ] {
        let (server, taken) = pouring(head, &[b'y'; 65536], usize::MAX).await;
        let answer = client().send(post(http(server.port()))).await.unwrap();
        assert_eq!((answer.status, answer.body_cut), (202, true));
        assert!(taken.await.unwrap() < READ + IN_KERNELS);
    }
}

#[tokio::test]
async fn out_12_endless_chunks_of_one_byte_are_cut_and_change_nothing() {
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let (server, taken) = pouring(head, b"1\r\nz\r\n", usize::MAX).await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    assert_eq!((answer.status, answer.body_cut), (200, true));
    assert!(taken.await.unwrap() < READ + IN_KERNELS);
}

#[tokio::test]
async fn an_endless_head_is_an_invalid_response() {
    let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    for (head, filling) in [
        (
            &b"HTTP/1.1 200 OK\r\n"[..],
            &b"x-filling: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"[..],
        ),
        (b"HTTP/1.1 200 OK\r\nx-filling: ", &[b'a'; 1024]),
        (interim, interim),
    ] {
        let (server, taken) = pouring(head, filling, usize::MAX).await;
        let failure = client().send(post(http(server.port()))).await.unwrap_err();
        assert_eq!(failure.class.as_str(), "invalid_response");
        assert!(taken.await.unwrap() < READ + IN_KERNELS);
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    for (length, cut) in [(MAX_BODY_BYTES, false), (MAX_BODY_BYTES + 1, true)] {
        let server = Server::answering(ok(&"x".repeat(length))).await;
        let answer = client().send(post(http(server.port()))).await.unwrap();
        assert_eq!(answer.body_cut, cut);
        assert_eq!(answer.body_bytes, MAX_BODY_BYTES);
    }
}

#[tokio::test]
async fn an_empty_body_has_the_hash_of_nothing() {
    let server = Server::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let answer = client().send(post(http(server.port()))).await.unwrap();
    let expected: [u8; 32] = Sha256::digest(b"").into();
    assert_eq!((answer.body_sha256, answer.body_bytes), (expected, 0));
}
