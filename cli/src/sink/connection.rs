//! One connection to the sink: reads a request, writes it down, answers as switched.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hookstead_signing::{Candidate, Headers, Request as Signed, builtin, verify};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use time::OffsetDateTime;
use tokio::net::TcpStream;

use super::mode::Mode;
use super::received::Received;
use super::server::Shared;
use crate::latin1;

/// Bodies up to this size are read: more than the receiver takes.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The body of the mode `huge`: fifty times what any reader of answers needs.
pub const HUGE_BYTES: u64 = 50 * 1024 * 1024;

/// It is written in pieces of this size.
const PIECE: &[u8] = &[b'x'; 64 * 1024];

/// What is switched and looked at over HTTP itself.
const CONTROL: &str = "/_sink/";

type Answer = Response<Either<Full<Bytes>, Huge>>;

/// The request ends in a reset and not in an answer.
#[derive(Debug, thiserror::Error)]
#[error("reset, as switched")]
struct Reset;

pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Answers are small, and whoever measures with the sink measures no delay of ours.
    stream.set_nodelay(true).ok();
    let resets = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&resets);
    let service = service_fn(move |request| {
        let (shared, told) = (Arc::clone(&shared), Arc::clone(&told));
        Box::pin(async move {
            let answered = answer(&shared, request).await;
            if answered.is_err() {
                told.store(true, Ordering::Relaxed);
            }
            answered
        })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // However it ends: callers that go away half-way are what the sink is for.
    std::future::poll_fn(|context| connection.poll_without_shutdown(context))
        .await
        .ok();
    let stream = connection.into_parts().io.into_inner();
    if resets.load(Ordering::Relaxed) {
        // Closing now sends a reset and no orderly end.
        stream.set_zero_linger().ok();
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Result<Answer, Reset> {
    if let Some(what) = request.uri().path().strip_prefix(CONTROL) {
        let what = what.to_owned();
        return Ok(control(shared, &what, request).await);
    }
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
        return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, String::new()));
    };
    let mode = settle(shared.mode());
    let mut headers = Headers::new();
    for (name, value) in &head.headers {
        headers.push(name.as_str(), latin1::decode(value.as_bytes()));
    }
    let body = body.to_bytes();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let received = Received {
        number: 0,
        at: OffsetDateTime::now_utc(),
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        webhook_id: headers.first("webhook-id").map(str::to_owned),
        attempt: headers
            .first("hookstead-attempt")
            .and_then(|text| text.parse().ok()),
        event_type: headers.first("ce-type").map(str::to_owned),
        bytes: body.len(),
        verified: verified(shared, head.method.as_str(), target, &headers, &body),
        answer: described(mode),
        headers,
        body,
    };
    shared.take_down(received, matches!(status(mode), Some(200..=299)));
    carry_out(mode).await
}

/// What a mode comes to for one request.
fn settle(mode: Mode) -> Mode {
    let Mode::Flaky(share) = mode else {
        return mode;
    };
    // Without chance every request fails, which is what the mode is for.
    let drawn = getrandom::u32().unwrap_or(0);
    if f64::from(drawn) < share * f64::from(u32::MAX) {
        Mode::Status(503)
    } else {
        Mode::Ok
    }
}

fn status(mode: Mode) -> Option<u16> {
    match mode {
        Mode::Ok | Mode::Slow(_) | Mode::Huge => Some(200),
        Mode::Status(status) => Some(status),
        Mode::Flaky(_) | Mode::Reset | Mode::Hang => None,
    }
}

fn described(mode: Mode) -> String {
    status(mode).map_or_else(|| mode.to_string(), |status| status.to_string())
}

async fn carry_out(mode: Mode) -> Result<Answer, Reset> {
    match mode {
        Mode::Reset => return Err(Reset),
        Mode::Hang => std::future::pending().await,
        Mode::Slow(pause) => tokio::time::sleep(pause).await,
        Mode::Huge => return Ok(Response::new(Either::Right(Huge { left: HUGE_BYTES }))),
        Mode::Ok | Mode::Status(_) | Mode::Flaky(_) => {}
    }
    // Modes hold only statuses that HTTP has.
    let status = status(mode).and_then(|status| StatusCode::from_u16(status).ok());
    Ok(text(status.unwrap_or(StatusCode::OK), String::new()))
}

fn verified(
    shared: &Shared,
    method: &str,
    target: &str,
    headers: &Headers,
    body: &[u8],
) -> Option<bool> {
    if shared.secrets.is_empty() {
        return None;
    }
    let scheme = builtin("standard-webhooks")?;
    let request = Signed {
        method,
        // The kind does not sign it.
        url: target,
        headers,
        body,
        decoded_body: None,
    };
    let label = "given";
    let secrets = shared.secrets.iter();
    let candidates: Vec<Candidate<'_>> =
        secrets.map(|secret| Candidate { label, secret }).collect();
    let now = OffsetDateTime::now_utc();
    Some(verify(scheme, &request, &candidates, now, None).is_ok())
}

/// `GET /_sink/mode`, `POST /_sink/mode`, `GET /_sink/counts`.
async fn control(shared: &Shared, what: &str, request: Request<Incoming>) -> Answer {
    match (request.method(), what) {
        (&Method::GET, "mode") => text(StatusCode::OK, format!("{}\n", shared.mode())),
        (&Method::POST, "mode") => {
            // A mode is a few characters.
            let body = Limited::new(request.into_body(), 256).collect().await;
            let wanted = body.ok().map(|body| body.to_bytes().to_vec());
            let wanted = wanted.and_then(|bytes| String::from_utf8(bytes).ok());
            match wanted.as_deref().unwrap_or_default().trim().parse::<Mode>() {
                Ok(mode) => {
                    shared.set_mode(mode);
                    text(StatusCode::OK, format!("{mode}\n"))
                }
                Err(error) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
            }
        }
        (&Method::GET, "counts") => {
            let counts = serde_json::to_string(&shared.counts()).unwrap_or_default();
            text(StatusCode::OK, format!("{counts}\n"))
        }
        _ => text(StatusCode::NOT_FOUND, String::new()),
    }
}

fn text(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(body))));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// A body that is written piece by piece and whose end is not announced.
struct Huge {
    left: u64,
}

impl Body for Huge {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left = self.left.saturating_sub(PIECE.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(PIECE)))))
    }
}
