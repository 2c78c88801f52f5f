//! Between the processes and SQS: everything passes, and what is asked is kept.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What came through one connection.
type Stream = Arc<Mutex<Vec<u8>>>;

pub(super) struct Tap {
    port: u16,
    streams: Arc<Mutex<Vec<Stream>>>,
    task: JoinHandle<()>,
}

impl Tap {
    /// A tap before the server at this `http://` address.
    pub(super) async fn before(endpoint: &str) -> Self {
        let upstream = endpoint.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&streams);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let kept = Stream::default();
                all.lock().unwrap().push(Arc::clone(&kept));
                let server = TcpStream::connect(&upstream).await.unwrap();
                tokio::spawn(pass(client, server, kept));
            }
        });
        Self {
            port,
            streams,
            task,
        }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every whole request, head and body.
    pub(super) fn requests(&self) -> Vec<Vec<u8>> {
        let streams = self.streams.lock().unwrap();
        let requests = streams.iter().flat_map(|kept| split(&kept.lock().unwrap()));
        requests.collect()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, kept: Stream) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let mut chunk = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from_client.read(&mut chunk).await {
            kept.lock().unwrap().extend_from_slice(&chunk[..read]);
            if to_server.write_all(&chunk[..read]).await.is_err() {
                break;
            }
        }
    };
    let down = copy(&mut from_server, &mut to_client);
    tokio::select! {
        () = up => {}
        _ = down => {}
    }
}

fn split(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    while let Some(length) = request_length(stream).filter(|length| *length <= stream.len()) {
        requests.push(stream[..length].to_vec());
        stream = &stream[length..];
    }
    requests
}

/// The length of the first request; `None` where not even its head is whole.
fn request_length(stream: &[u8]) -> Option<usize> {
    let end = stream.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&stream[..end]).to_ascii_lowercase();
    let body = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    Some(end + body.map_or(0, |length| length.parse::<usize>().unwrap()))
}
