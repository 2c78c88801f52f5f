//! The sink: a consumer that takes everything, in a process of its own.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::rc::Rc;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use crate::child::Task;
use crate::lines::Asked;
use crate::{process, sample};

/// What came since it was last asked: the number in each body, and when, in Unix
/// microseconds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Arrivals(pub(crate) Vec<(u64, u64)>);

/// The sink, as the measuring process sees it.
pub(crate) struct Sink {
    child: Mutex<Asked>,
    port: u16,
}

impl Sink {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut child = Asked::start(&Task::Sink)?;
        Ok(Self {
            port: child.hear()?,
            child: Mutex::new(child),
        })
    }

    /// Where deliveries go.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    /// What came since the last time.
    pub(crate) fn take(&self) -> anyhow::Result<Arrivals> {
        let mut child = self
            .child
            .lock()
            .map_err(|_| anyhow::anyhow!("the sink was left half-asked"))?;
        child.ask()
    }
}

type Seen = Rc<RefCell<Arrivals>>;

/// Serves until the input ends, in the child: says its port, then what came whenever
/// it is asked.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&listener.local_addr()?.port())?;
    let mut questions = questions();
    let seen = Seen::default();
    let local = LocalSet::new();
    local.spawn_local(accept(listener, Rc::clone(&seen)));
    local
        .run_until(async {
            while let Some(answered) = questions.recv().await {
                say(&seen.take())?;
                // The thread that asks waits for this. It is gone when the process is.
                answered.send(()).ok();
            }
            Ok(())
        })
        .await
}

async fn accept(listener: TcpListener, seen: Seen) {
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Rc::clone(&seen);
        // Small answers must not wait for an acknowledgement.
        stream.set_nodelay(true).ok();
        tokio::task::spawn_local(async move {
            let service = service_fn(|request| answer(request, Rc::clone(&seen)));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A connection that breaks is the client's to notice.
            connection.await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Seen,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let Ok(body) = request.into_body().collect().await else {
        return Ok(Response::new(Empty::new()));
    };
    let number = sample::number_in(&body.to_bytes());
    let mut seen = seen.borrow_mut();
    seen.0
        .push((number.unwrap_or_default(), process::unix_us()));
    Ok(Response::new(Empty::new()))
}

fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut output = std::io::stdout().lock();
    output.write_all(&line)?;
    output.flush()?;
    Ok(())
}

/// A line on the input each; ends with it.
fn questions() -> mpsc::Receiver<oneshot::Sender<()>> {
    let (ask, questions) = mpsc::channel(1);
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            let (answered, answer) = oneshot::channel();
            if ask.blocking_send(answered).is_err() || answer.blocking_recv().is_err() {
                return;
            }
        }
    });
    questions
}
