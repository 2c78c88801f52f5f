//! A server that says exactly what a test wants said, byte by byte.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Vec<u8>>>,
}

/// A running server. It ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

/// One connection, as the script of a test sees it.
pub(crate) struct Session {
    /// Which one, from 0.
    pub(crate) number: usize,
    stream: Box<dyn Stream>,
    seen: Arc<Seen>,
}

impl Server {
    /// Runs `script` on every connection.
    pub(crate) async fn start<F, R>(script: F) -> Self
    where
        F: Fn(Session) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::run(
            listener(SocketAddr::from(([127, 0, 0, 1], 0))),
            None,
            script,
        )
    }

    /// The same over TLS.
    pub(crate) async fn start_tls<F, R>(tls: TlsAcceptor, script: F) -> Self
    where
        F: Fn(Session) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = listener(SocketAddr::from(([127, 0, 0, 1], 0)));
        Self::run(listener, Some(tls), script)
    }

    /// Answers every request of every connection with these bytes.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |session| answer_all(session, answer.clone())).await
    }

    /// One on another loopback address, at the port of this one.
    pub(crate) fn neighbour(&self, ip: Ipv4Addr) -> Self {
        let listener = listener(SocketAddr::from((ip, self.address.port())));
        Self::run(listener, None, |session| {
            answer_all(session, ok("neighbour"))
        })
    }

    fn run<F, R>(listener: TcpListener, tls: Option<TlsAcceptor>, script: F) -> Self
    where
        F: Fn(Session) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let server = Self {
            address,
            seen: Arc::clone(&seen),
        };
        let script = Arc::new(script);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = seen.connections.fetch_add(1, Ordering::SeqCst);
                let (tls, script, seen) = (tls.clone(), Arc::clone(&script), Arc::clone(&seen));
                tokio::spawn(async move {
                    let stream: Box<dyn Stream> = match tls {
                        None => Box::new(stream),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    let session = Session {
                        number,
                        stream,
                        seen,
                    };
                    script(session).await;
                });
            }
        });
        server
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The requests, each with its head and body as they came.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Small send buffers, so that what a test counts is what was read, more or less.
fn listener(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16 * 1024).unwrap();
    socket.bind(address).unwrap();
    socket.listen(64).unwrap()
}

impl Session {
    /// The next request, whole; `None` at the end of the connection.
    pub(crate) async fn request(&mut self) -> Option<Vec<u8>> {
        let mut read = Vec::new();
        loop {
            if let Some(length) = length(&read)
                && read.len() >= length
            {
                self.seen.requests.lock().unwrap().push(read.clone());
                return Some(read);
            }
            if self.stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub(crate) async fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Goes on for ever with the same bytes. Returns how many were taken.
    pub(crate) async fn say_until_closed(&mut self, bytes: &[u8], at_most: usize) -> usize {
        let mut taken = 0;
        while taken < at_most {
            // A write may take a part: the next one goes on there.
            match self.stream.write(&bytes[taken % bytes.len()..]).await {
                Ok(0) | Err(_) => break,
                Ok(count) => taken += count,
            }
        }
        taken
    }

    /// Says nothing more and keeps the connection open.
    pub(crate) async fn hang(mut self) {
        while self.stream.read_u8().await.is_ok() {}
        std::future::pending().await
    }
}

/// How long the request is, once its head is there.
fn length(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    let body = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    Some(head + body.map_or(0, |digits| digits.trim().parse().unwrap()))
}

pub(crate) async fn answer_all(mut session: Session, answer: Vec<u8>) {
    while session.request().await.is_some() {
        session.say(&answer).await;
    }
}

/// A connection that is reset once the request is there, after `first`.
pub(crate) async fn resetting(listener: TcpListener, first: &'static [u8]) {
    let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
    // Reading one byte leaves the rest of the request unread, and closing on unread
    // bytes resets; zero linger does the same where all was read.
    stream.read_u8().await.unwrap();
    stream.write_all(first).await.unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
}

/// A whole answer with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
