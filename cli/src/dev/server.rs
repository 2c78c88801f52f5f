//! The HTTP server of `dev`: one thread, HTTP/1, the receiver behind it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hookstead_domain::ErrorCode;
use hookstead_receiver::{Answer, InboundRequest, Receiver};
use hookstead_secrets::SecretProvider;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::latin1;

/// How long a connection may take over its request line and headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);

/// How long requests under way may take once the server is told to stop. The
/// store answers within two seconds or not at all.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// How much of an unread body is thrown away after the answer. Closing at once
/// would reset the connection, and the sender might never see the answer.
const LINGER_BYTES: u64 = 16 * 1024 * 1024;

/// How long that may take.
const LINGER_FOR: Duration = Duration::from_secs(2);

/// What answers the requests: the receiver, or a test's.
pub(crate) trait Handler: 'static {
    /// Answers one request.
    fn handle(&self, request: InboundRequest) -> impl Future<Output = Answer>;
}

impl<P: SecretProvider + 'static> Handler for Receiver<P> {
    fn handle(&self, request: InboundRequest) -> impl Future<Output = Answer> {
        Receiver::handle(self, request)
    }
}

/// Serves until `stop` turns true, then lets requests under way finish.
pub(crate) async fn serve<H: Handler>(
    listener: TcpListener,
    handler: Rc<H>,
    max_body_bytes: usize,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let told = stop.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (handler, told) = (Rc::clone(&handler), told.clone());
                    connections.spawn_local(connection(stream, handler, max_body_bytes, told));
                }
                // Too many open files, or a client that went away meanwhile: the next may work.
                Err(error) => {
                    tracing::warn!(error = %error, "a connection could not be accepted");
                    tokio::task::yield_now().await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stop.wait_for(|told| *told) => break,
        }
    }
    drop(listener);
    let drained = timeout(DRAIN_WITHIN, async {
        while connections.join_next().await.is_some() {}
    });
    if drained.await.is_err() {
        tracing::warn!("requests under way did not finish in time and were cut off");
    }
}

async fn connection<H: Handler>(
    stream: TcpStream,
    handler: Rc<H>,
    max_body_bytes: usize,
    mut stop: watch::Receiver<bool>,
) {
    let local = stream.local_addr().ok();
    let service = service_fn(move |request| {
        let answered = answer(Rc::clone(&handler), request, max_body_bytes, local);
        Box::pin(answered) as Pin<Box<dyn Future<Output = _>>>
    });
    let mut connection = http1::Builder::new()
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
            _ = stop.wait_for(|told| *told), if !stopping => {
                stopping = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection ended early");
    }
    linger(connection.into_parts().io.into_inner()).await;
}

/// Ends our side, then reads what the sender is still sending, within bounds.
async fn linger(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = stream.take(LINGER_BYTES);
    let mut nowhere = tokio::io::sink();
    let thrown_away = timeout(LINGER_FOR, tokio::io::copy(&mut rest, &mut nowhere));
    // However this ends, the connection is over.
    thrown_away.await.ok();
}

async fn answer<H: Handler>(
    handler: Rc<H>,
    request: Request<Incoming>,
    max_body_bytes: usize,
    local: Option<SocketAddr>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let read = match transfer(&head.headers) {
        Ok(()) => read_body(body, max_body_bytes).await,
        Err(code) => Err(code),
    };
    let answer = match read {
        Ok(body) => guarded(handler, inbound(&head, body, local)).await,
        Err(code) => {
            tracing::info!(
                error.code = code.as_str(),
                "a request was refused before its body was read"
            );
            Answer::refused(code)
        }
    };
    Ok(response(answer))
}

/// Chunks are undone by hyper; another coding for the transfer by nobody.
fn transfer(headers: &HeaderMap) -> Result<(), ErrorCode> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let only_chunked = codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    only_chunked
        .then_some(())
        .ok_or(ErrorCode::MalformedRequest)
}

/// The exact bytes of the body; reading ends one byte past the limit.
async fn read_body(body: Incoming, max_bytes: usize) -> Result<Vec<u8>, ErrorCode> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(ErrorCode::BodyTooLarge);
    }
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ErrorCode::BodyTooLarge)
        }
        Err(_) => Err(ErrorCode::MalformedRequest),
    }
}

/// A panic while one request is handled becomes that request's 500. The task
/// also goes on when its sender hangs up, so that a commit under way is finished.
async fn guarded<H: Handler>(handler: Rc<H>, request: InboundRequest) -> Answer {
    let handling = tokio::task::spawn_local(async move { handler.handle(request).await });
    handling.await.unwrap_or_else(|_| {
        tracing::error!("handling a request panicked; it was answered with 500");
        Answer::refused(ErrorCode::Internal)
    })
}

fn inbound(
    head: &http::request::Parts,
    body: Vec<u8>,
    local: Option<SocketAddr>,
) -> InboundRequest {
    let pairs = head.headers.iter();
    let headers = pairs.map(|(name, value)| (name.as_str(), latin1::decode(value.as_bytes())));
    let host = head
        .headers
        .get(HOST)
        .map(|host| latin1::decode(host.as_bytes()));
    let called = head.uri.authority().map(ToString::to_string).or(host);
    let host = called.or_else(|| local.map(|address| address.to_string()));
    InboundRequest {
        method: head.method.as_str().to_ascii_uppercase(),
        path: head.uri.path().to_owned(),
        raw_query: head.uri.query().unwrap_or_default().to_owned(),
        origin: format!("http://{}", host.unwrap_or_default()),
        headers: hookstead_signing::Headers::from_pairs(headers),
        body,
    }
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    match StatusCode::from_u16(answer.status) {
        Ok(status) => *response.status_mut() = status,
        Err(_) => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    for (name, value) in answer.headers {
        // A handshake may echo a header value; one that HTTP cannot carry is left out.
        let name = HeaderName::try_from(name);
        let value = HeaderValue::from_bytes(&latin1::encode(&value));
        if let (Ok(name), Ok(value)) = (name, value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Handler for Echo {
        async fn handle(&self, request: InboundRequest) -> Answer {
            assert!(request.path != "/panic", "asked to");
            let mut answer = Answer::empty(200);
            answer.body = request.body;
            answer
        }
    }

    /// Sends bytes, closes the sending side, reads to the end.
    async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        latin1::decode(&answer)
    }

    /// Runs the test against a server with a limit of 8 bytes, then stops it.
    async fn with_server(test: impl AsyncFnOnce(SocketAddr)) {
        let local = tokio::task::LocalSet::new();
        let run = async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (tell, told) = watch::channel(false);
            let serving = tokio::task::spawn_local(serve(listener, Rc::new(Echo), 8, told));
            test(address).await;
            tell.send(true).unwrap();
            serving.await.unwrap();
            assert!(
                TcpStream::connect(address).await.is_err(),
                "the port is free again"
            );
        };
        local.run_until(run).await;
    }

    #[tokio::test]
    async fn a_panic_is_answered_with_500_and_the_server_goes_on() {
        with_server(async |address| {
            let answer = exchange(address, b"POST /panic HTTP/1.1\r\nhost: h\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
            assert!(answer.ends_with("{\"error\":\"internal\"}"), "{answer}");
            let ok = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nok";
            assert!(exchange(address, ok).await.ends_with("ok"));
        })
        .await;
    }

    #[tokio::test]
    async fn a_body_past_the_limit_is_refused_whether_or_not_its_length_is_announced() {
        with_server(async |address| {
            let exact = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 8\r\n\r\n12345678";
            assert!(exchange(address, exact).await.ends_with("12345678"));
            let announced = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\n123456789";
            let answer = exchange(address, announced).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            let mut chunked =
                b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            for _ in 0..9 {
                chunked.extend_from_slice(b"1\r\nx\r\n");
            }
            chunked.extend_from_slice(b"0\r\n\r\n");
            let answer = exchange(address, &chunked).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_coding_for_the_transfer_that_is_not_undone_is_refused() {
        with_server(async |address| {
            for coding in ["gzip, chunked", "gzip\r\ntransfer-encoding: chunked"] {
                let head = format!("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: {coding}");
                let request = format!("{head}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
                let answer = exchange(address, request.as_bytes()).await;
                assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
                let code = "{\"error\":\"malformed_request\"}";
                assert!(answer.contains(code), "{answer}");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_sender_of_a_far_too_large_body_still_reads_the_answer() {
        with_server(async |address| {
            let mut large =
                b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 4194304\r\n\r\n".to_vec();
            large.resize(large.len() + 4 * 1024 * 1024, b'x');
            let answer = exchange(address, &large).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        })
        .await;
    }
}
