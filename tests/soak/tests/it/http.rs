//! An HTTP server of bytes: it answers whatever it is told to, also what is no HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it stood on the wire.
pub(crate) struct Request {
    /// The first line and the headers.
    pub(crate) head: String,
    pub(crate) path: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What is answered.
pub(crate) enum Reply {
    /// These bytes; the connection goes on.
    Bytes(Vec<u8>),
    /// These bytes, and the connection is closed.
    Last(Vec<u8>),
    /// Nothing, until the other side gives up.
    Never,
}

impl Reply {
    /// A whole answer. `status` is the number with its text.
    pub(crate) fn whole(status: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        Self::Bytes(format!("{text}\r\n{body}").into_bytes())
    }
}

/// The server; it ends when dropped.
pub(crate) struct Server {
    port: u16,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = Arc::clone(&answer);
                tokio::spawn(async move { serve(stream, &*answer).await });
            }
        });
        Self { port, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves until either side closes; a client that was killed is no reason to stop.
async fn serve(stream: TcpStream, answer: &(dyn Fn(Request) -> Reply + Send + Sync)) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        match answer(request) {
            Reply::Bytes(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Reply::Last(bytes) => {
                stream.write_all(&bytes).await.ok();
                return;
            }
            Reply::Never => {
                stream.read_u8().await.ok();
                return;
            }
        }
    }
}

/// The next request; `None` where the client is gone or speaks no HTTP.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    stream.read_line(&mut head).await.ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let start = head.len();
        stream.read_line(&mut head).await.ok()?;
        let Some((name, value)) = head[start..].trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or("0", String::as_str);
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request {
        head,
        path,
        headers,
        body,
    })
}
