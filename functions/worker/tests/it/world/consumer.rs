//! An HTTP server of bytes: it keeps what came and answers as the test says.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A request as it stood on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self
    }
}

type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;
type Answer = dyn Fn(Request, usize) -> Answering + Send + Sync;

pub(crate) struct Consumer {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

struct Shared {
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Sender<usize>,
    answer: Box<Answer>,
}

impl Consumer {
    /// Answers everything with this status.
    pub(crate) async fn answering(status: u16) -> Self {
        Self::replying(move |_, _| Reply::status(status)).await
    }

    /// Answers by the request and its number, from 1.
    pub(crate) async fn replying(
        reply: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |request, number| {
            let reply = reply(&request, number);
            Box::pin(std::future::ready(reply))
        })
        .await
    }

    /// Never answers.
    pub(crate) async fn hanging() -> Self {
        Self::start(|_, _| Box::pin(std::future::pending())).await
    }

    /// Answers when the future does.
    pub(crate) async fn start(
        answer: impl Fn(Request, usize) -> Answering + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (count_sender, count) = watch::channel(0);
        let shared = Arc::new(Shared {
            requests: Arc::clone(&requests),
            count: count_sender,
            answer: Box::new(answer),
        });
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self {
            port,
            requests,
            count,
            task,
        }
    }

    /// A subscription's destination that leads here.
    pub(crate) fn destination(&self, path: &str) -> Value {
        json!({"kind": "http", "url": self.url(path), "allow_http": true})
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// What came so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, requests: usize) {
        let mut count = self.count.clone();
        count.wait_for(|count| *count >= requests).await.unwrap();
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut requests = shared.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len()
        };
        shared.count.send_replace(number);
        let reply = (shared.answer)(request, number).await;
        let mut head = format!(
            "HTTP/1.1 {} -\r\ncontent-length: {}\r\n",
            reply.status,
            reply.body.len()
        );
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let written = format!("{head}\r\n{}", reply.body);
        if stream.write_all(written.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream
        .read_line(&mut line)
        .await
        .ok()
        .filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        let twice = headers.insert(name.to_ascii_lowercase(), value.to_owned());
        assert!(twice.is_none(), "header {name} is on the wire twice");
    }
    let length: usize = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request {
        path,
        headers,
        body,
    })
}
