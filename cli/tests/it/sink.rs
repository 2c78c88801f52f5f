//! The sink: what it takes down, how it answers, how it is switched.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use hookstead::sink::{HUGE_BYTES, Mode, Sink, SinkOptions};
use hookstead_signing::{Headers, Secret, SignInput, builtin, sign};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::net::TcpListener;

use crate::support::Project;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

async fn sink(mode: Mode) -> Sink {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = SinkOptions {
        mode,
        secrets: vec![Secret::new(SECRET).unwrap()],
        ..SinkOptions::default()
    };
    Sink::start(listener, options).unwrap()
}

/// A signed delivery, as it stands on the wire.
fn delivery(id: &str, body: &str) -> Vec<u8> {
    let headers = Headers::new();
    let input = SignInput {
        method: "POST",
        url: "http://sink/",
        headers: &headers,
        body: body.as_bytes(),
        now: OffsetDateTime::now_utc(),
        id,
    };
    let secret = Secret::new(SECRET).unwrap();
    let signed = sign(builtin("standard-webhooks").unwrap(), &secret, &input).unwrap();
    let mut text = "POST /hooks?token=1 HTTP/1.1\r\nHost: sink\r\nConnection: close\r\n".to_owned();
    for (name, value) in signed.headers.iter() {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    text.push_str(&format!(
        "hookstead-attempt: 3\r\nce-type: invoice.paid\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    text.into_bytes()
}

/// Sends it and reads until the sink closes. The error is that of reading.
fn ask_now(address: SocketAddr, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    // Our side stays open, as that of clients does: a sink drops who hangs up.
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

async fn ask(address: SocketAddr, request: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let asked = tokio::task::spawn_blocking(move || ask_now(address, &request));
    asked.await.unwrap()
}

/// The same, as text.
fn told(address: SocketAddr, request: &[u8]) -> String {
    String::from_utf8(ask_now(address, request).unwrap()).unwrap()
}

async fn status(sink: &Sink, request: Vec<u8>) -> String {
    let answer = ask(sink.address(), request).await.unwrap();
    let line = answer.split(|&byte| byte == b'\r').next().unwrap();
    String::from_utf8_lossy(line).into_owned()
}

#[tokio::test]
async fn what_arrives_is_taken_down_with_whether_it_verifies() {
    let sink = sink(Mode::Ok).await;
    assert_eq!(
        status(&sink, delivery("msg_1", "{\"a\":1}")).await,
        "HTTP/1.1 200 OK"
    );
    let mut altered = delivery("msg_2", "{\"a\":1}");
    *altered.last_mut().unwrap() = b']';
    assert_eq!(status(&sink, altered).await, "HTTP/1.1 200 OK");
    let received = sink.wait_for(2).await;
    let first = &received[0];
    assert_eq!(first.webhook_id.as_deref(), Some("msg_1"));
    assert_eq!(first.attempt, Some(3));
    assert_eq!(first.event_type.as_deref(), Some("invoice.paid"));
    assert_eq!((first.bytes, &first.body[..]), (7, &b"{\"a\":1}"[..]));
    assert_eq!(
        (first.path.as_str(), first.answer.as_str()),
        ("/hooks", "200")
    );
    let verified: Vec<_> = received.iter().map(|one| one.verified).collect();
    assert_eq!(verified, [Some(true), Some(false)]);
    let counts = sink.stop().await;
    assert_eq!(
        (counts.received, counts.verified, counts.not_verified),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn each_mode_answers_as_it_says() {
    let sink = sink(Mode::Status(503)).await;
    let one = || delivery("msg_1", "{}");
    assert_eq!(
        status(&sink, one()).await,
        "HTTP/1.1 503 Service Unavailable"
    );
    sink.set_mode(Mode::Slow(std::time::Duration::from_millis(1)));
    assert_eq!(status(&sink, one()).await, "HTTP/1.1 200 OK");
    sink.set_mode(Mode::Reset);
    let error = ask(sink.address(), one()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    sink.set_mode(Mode::Huge);
    let answer = ask(sink.address(), one()).await.unwrap();
    assert!(answer.len() as u64 > HUGE_BYTES, "{}", answer.len());
    sink.set_mode(Mode::Flaky(1.0));
    assert_eq!(
        status(&sink, one()).await,
        "HTTP/1.1 503 Service Unavailable"
    );
    sink.set_mode(Mode::Flaky(0.0));
    assert_eq!(status(&sink, one()).await, "HTTP/1.1 200 OK");
    let answers: Vec<String> = sink.received().into_iter().map(|one| one.answer).collect();
    assert_eq!(answers, ["503", "200", "reset", "200", "503", "200"]);
    assert_eq!((sink.counts().accepted, sink.counts().refused), (3, 3));
}

#[tokio::test]
async fn a_sink_that_hangs_takes_down_the_request_and_still_stops() {
    let sink = sink(Mode::Hang).await;
    let asked = tokio::spawn(ask(sink.address(), delivery("msg_1", "{}")));
    let received = sink.wait_for(1).await;
    assert_eq!(received[0].answer, "hang");
    assert!(!asked.is_finished());
    sink.stop().await;
    // Closed without an answer.
    assert_eq!(asked.await.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn it_keeps_the_newest_and_counts_all() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = SinkOptions {
        keep: 2,
        ..SinkOptions::default()
    };
    let sink = Sink::start(listener, options).unwrap();
    for n in 1..=3 {
        status(&sink, delivery(&format!("msg_{n}"), "{}")).await;
    }
    let kept: Vec<u64> = sink.received().iter().map(|one| one.number).collect();
    assert_eq!(kept, [2, 3]);
    assert_eq!(sink.counts().received, 3);
    assert_eq!(sink.received()[0].verified, None);
    assert!(!format!("{:?}", sink.received()).contains("whsec"));
}

/// The command, running.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Running {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let all = [&["sink", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut child = project
            .command(&all)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let ready = next(&mut lines);
        let url = ready["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self {
            child,
            lines,
            address,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn next(lines: &mut impl std::io::BufRead) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn the_command_prints_a_line_for_each_request_and_is_switched_while_it_runs() {
    let project = Project::with("");
    let secret = project.write("secret", format!("{SECRET}\n").as_bytes());
    let mut sink = Running::start(&project, &["--secret-file", secret.to_str().unwrap()]);
    let at = sink.address.to_string();
    let answer = told(sink.address, &delivery("msg_1", "{}"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let line = next(&mut sink.lines);
    assert_eq!(line["webhook_id"], "msg_1");
    assert_eq!(
        (&line["verified"], &line["answer"]),
        (&true.into(), &"200".into())
    );
    let set = project
        .run(&["sink", "set", "status=418", "--at", &at, "--json"])
        .json();
    assert_eq!(set["mode"], "status=418");
    let answer = told(sink.address, &delivery("msg_1", "{}"));
    assert!(answer.starts_with("HTTP/1.1 418 "), "{answer}");
    assert_eq!(next(&mut sink.lines)["answer"], "418");
    let wrong = project.run(&["sink", "set", "sideways", "--at", &at]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let pid = sink.child.id().to_string();
    let told = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(told.unwrap().success());
    let counts = next(&mut sink.lines);
    assert_eq!(
        (&counts["received"], &counts["accepted"]),
        (&2.into(), &1.into())
    );
    assert!(sink.child.wait().unwrap().success());
}

#[test]
fn an_address_that_is_taken_and_one_where_nothing_is_are_told_apart() {
    let project = Project::with("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let refused = project.run(&["sink", "--listen", &at]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("error[port_taken]"), "{refused:?}");
    assert!(
        refused.err.contains("hookstead sink --listen"),
        "{refused:?}"
    );
    drop(taken);
    let refused = project.run(&["sink", "set", "ok", "--at", &at]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.err.contains("error[http_unreachable]"),
        "{refused:?}"
    );
}
