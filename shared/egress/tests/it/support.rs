//! Clients, resolvers and requests for tests.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use hookstead_egress::{Egress, EgressSettings, OutgoingRequest, Resolver, Resolving};
use http::{HeaderMap, Method};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The name that tests call.
pub(crate) const NAME: &str = "hooks.example.com";

/// Gives its answers one after another, the last one for ever.
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            asked: AtomicUsize::new(0),
        })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, _name: &'a str) -> Resolving<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            0 => Err(io::Error::other("no such name")),
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.pop_front().unwrap()),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Settings under which every name is 127.0.0.1, and that may be called.
pub(crate) fn settings() -> EgressSettings {
    EgressSettings {
        allowed: "127.0.0.1".parse().unwrap(),
        resolver: Scripted::new(&[&["127.0.0.1"]]),
        ..EgressSettings::default()
    }
}

pub(crate) fn client() -> Egress {
    Egress::new(settings()).unwrap()
}

pub(crate) fn post(url: impl Into<String>) -> OutgoingRequest {
    OutgoingRequest {
        method: Method::POST,
        url: url.into(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{\"a\":1}"),
        deadline: LONG,
        allow_http: true,
    }
}

/// The address of a plain server under the name that tests call.
pub(crate) fn http(port: u16) -> String {
    format!("http://{NAME}:{port}/in?key=1")
}

pub(crate) fn https(port: u16) -> String {
    format!("https://{NAME}:{port}/in?key=1")
}

/// The header lines of a captured request, names in lower case.
pub(crate) fn header_lines(request: &[u8]) -> Vec<(String, String)> {
    let head = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = std::str::from_utf8(&request[..head]).unwrap();
    let lines = head.split("\r\n").skip(1);
    let parse = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    lines.map(parse).collect()
}

/// The values of one header.
pub(crate) fn values(request: &[u8], name: &str) -> Vec<String> {
    let lines = header_lines(request).into_iter();
    lines
        .filter_map(|(line, value)| (line == name).then_some(value))
        .collect()
}

/// The body of a captured request.
pub(crate) fn body(request: &[u8]) -> &[u8] {
    let head = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    &request[head + 4..]
}
