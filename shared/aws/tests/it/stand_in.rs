//! A server that answers as a service of AWS would, where the emulator cannot be made to.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookstead_aws::Aws;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// One answer.
pub(crate) enum Answer {
    /// A status, headers, and a body.
    With(u16, Vec<(&'static str, String)>, String),
    /// The connection is closed without one.
    HangUp,
    /// None, ever.
    Silence,
}

impl Answer {
    pub(crate) fn ok(body: &Value) -> Self {
        Self::With(200, Vec::new(), body.to_string())
    }

    /// An error as the JSON protocols of AWS write it.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        let body = serde_json::json!({ "__type": code, "message": "CANARY" });
        Self::With(status, Vec::new(), body.to_string())
    }
}

type Answering = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// The running server; it ends when dropped.
pub(crate) struct StandIn {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts a server that answers each request by a function.
    pub(crate) async fn answering(
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, Arc::clone(&asked), Arc::new(answer)));
        Self { port, asked, task }
    }

    /// Starts a server that gives these answers in turn, and the last one for ever.
    pub(crate) async fn saying(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        Self::answering(move |_| {
            let mut answers = answers.lock().unwrap();
            match answers.pop_front().unwrap() {
                Answer::With(status, headers, body) if answers.is_empty() => {
                    answers.push_back(Answer::With(status, headers.clone(), body.clone()));
                    Answer::With(status, headers, body)
                }
                answer => answer,
            }
        })
        .await
    }

    /// Clients that take this server for AWS.
    pub(crate) fn aws(&self) -> Aws {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        Aws::read(|name| match name {
            "AWS_ENDPOINT_URL" => Some(endpoint.clone()),
            "AWS_REGION" => Some("us-east-1".to_owned()),
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
            _ => None,
        })
        .unwrap()
    }

    /// Everything asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, asked: Arc<Mutex<Vec<Asked>>>, answering: Answering) {
    while let Ok((stream, _)) = listener.accept().await {
        let (asked, answering) = (Arc::clone(&asked), Arc::clone(&answering));
        let service = service_fn(move |request| {
            let (asked, answering) = (Arc::clone(&asked), Arc::clone(&answering));
            async move { Ok::<_, Infallible>(answer(request, &asked, &answering).await) }
        });
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            // A hang-up that was asked for ends here.
            served.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: &Mutex<Vec<Asked>>,
    answering: &Answering,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let one = Asked {
        path: parts.uri.to_string(),
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    asked.lock().unwrap().push(one.clone());
    match answering(&one) {
        Answer::With(status, headers, body) => {
            let mut response = Response::builder()
                .status(status)
                .header("x-amzn-requestid", "request-1");
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Full::new(Bytes::from(body))).unwrap()
        }
        Answer::HangUp => panic!("hangs up: the connection ends with its task"),
        Answer::Silence => std::future::pending().await,
    }
}
