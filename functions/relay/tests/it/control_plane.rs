//! A control plane that answers as its script says, and checks what it gets.

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock, Mutex};

use boon::{Compiler, SchemaIndex, Schemas};
use hookstead_egress::{Egress, EgressSettings};
use hookstead_relay::ControlPlane;
use hookstead_secrets::{FetchFuture, SecretProvider, SecretVersion, VersionLabel};
use hookstead_signing::Secret;
use http::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) const SECRET: &str = "whsec_Q0FOQVJZQ0FOQVJZQ0FOQVJZQ0FOQVJZ";
const PREVIOUS: &str = "whsec_UFJFVklPVVNQUkVWSU9VU1BSRVZJT1VT";

/// What each line must be, as the contract has it.
struct Contract {
    schemas: Schemas,
    line: SchemaIndex,
}

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.add_resource("report", schema()).unwrap();
    let line = compiler.compile("report", &mut schemas).unwrap();
    Contract { schemas, line }
});

fn schema() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../../docs/report.schema.json")).unwrap()
}

impl Contract {
    /// What is wrong with a line.
    fn problem(&self, report: &serde_json::Value) -> Option<String> {
        let validated = self.schemas.validate(report, self.line);
        validated.err().map(|error| error.to_string())
    }
}

/// What is done with one request.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Answers this status line and these headers, each ended by CR LF.
    Answer(&'static str),
    /// Takes it, and loses the answer.
    Lose,
    /// Never answers.
    Hang,
}

pub(crate) const TAKEN: Script = Script::Answer("204 No Content\r\n");

/// One request, checked.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Server {
    port: u16,
    requests: UnboundedReceiver<Received>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Does with the first request what stands first, and with all later ones what
    /// stands last.
    pub(crate) async fn start(script: impl IntoIterator<Item = Script>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = unbounded_channel();
        let mut script: Vec<_> = script.into_iter().collect();
        script.reverse();
        let script = Arc::new(Mutex::new(script));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script.clone(), sender.clone()));
            }
        });
        Self {
            port,
            requests,
            task,
        }
    }

    /// The relay's side of it.
    pub(crate) fn control_plane(&self) -> ControlPlane {
        let egress = Egress::new(EgressSettings {
            allowed: "127.0.0.1".parse().unwrap(),
            ..EgressSettings::default()
        });
        let url = format!("http://127.0.0.1:{}/CANARY-PATH/reports", self.port);
        let secrets = Arc::new(TwoVersions);
        ControlPlane::new(egress.unwrap(), url, true, "env:REPORTS", secrets).unwrap()
    }

    /// The next request, once it is whole.
    pub(crate) async fn next(&mut self) -> Received {
        self.requests.recv().await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct TwoVersions;

impl SecretProvider for TwoVersions {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        assert_eq!(reference, "env:REPORTS");
        let version = |label, text| SecretVersion {
            label,
            secret: Secret::new(text).unwrap(),
            not_after: None,
        };
        let versions = vec![
            version(VersionLabel::Current, SECRET),
            version(VersionLabel::Previous, PREVIOUS),
        ];
        Box::pin(std::future::ready(Ok(versions)))
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<Mutex<Vec<Script>>>,
    sender: UnboundedSender<Received>,
) {
    let (head, body) = read(&mut stream).await;
    let received = check(&head, body);
    let next = {
        let mut script = script.lock().unwrap();
        match script.len() {
            1 => script[0].clone(),
            _ => script.pop().unwrap(),
        }
    };
    let answer = match next {
        Script::Answer(answer) => answer,
        Script::Lose => {
            sender.send(received).ok();
            return;
        }
        Script::Hang => {
            sender.send(received).ok();
            // Holds the connection open until the test's runtime ends.
            let never = Semaphore::new(0);
            never.acquire().await.unwrap().forget();
            return;
        }
    };
    let answer = format!("HTTP/1.1 {answer}content-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok();
    sender.send(received).ok();
}

async fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length: usize = header(&head, "content-length").unwrap().parse().unwrap();
            let mut body = bytes.split_off(end + 4);
            let read = body.len();
            body.resize(length, 0);
            stream.read_exact(&mut body[read..]).await.unwrap();
            return (head, body);
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// What every request must be, whatever becomes of it.
fn check(head: &str, body: Vec<u8>) -> Received {
    assert!(head.starts_with("POST /CANARY-PATH/reports HTTP/1.1"));
    assert_eq!(header(head, "content-type"), Some("application/x-ndjson"));
    let mut headers = HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let value = HeaderValue::from_str(header(head, name).unwrap()).unwrap();
        headers.insert(HeaderName::from_static(name), value);
    }
    for secret in [SECRET, PREVIOUS] {
        let webhook = Webhook::new(secret).unwrap();
        webhook.verify(&body, &headers).unwrap();
    }
    assert_eq!(body.last(), Some(&b'\n'));
    for line in body
        .strip_suffix(b"\n")
        .unwrap()
        .split(|byte| *byte == b'\n')
    {
        let report = serde_json::from_slice(line).unwrap();
        assert_eq!(CONTRACT.problem(&report), None);
    }
    Received {
        id: header(head, "webhook-id").unwrap().to_owned(),
        body,
    }
}

#[test]
fn the_schema_takes_no_field_more_and_none_less() {
    let report = |more: &str| {
        let text = format!(
            r#"{{"schema_version":1,"report_id":"0190b7a4-0000-8000-8000-000000000001",
                "instance_id":"0190b7a4-0000-4000-8000-000000000002",
                "job_id":"0190b7a4-0000-8000-8000-000000000003","status":"succeeded",
                "attempt_count":1,"error_class":null,
                "processed_at":"2026-02-03T04:05:06.789Z"{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let whole = r#","duration_ms":12"#;
    let subject = r#","duration_ms":12,"provider":"stripe","event_type":"invoice.paid""#;
    for fits in [whole, subject] {
        assert!(CONTRACT.problem(&report(fits)).is_none(), "{fits}");
    }
    for broken in [
        "",
        r#","duration_ms":12,"detail":"text""#,
        r#","duration_ms":12,"provider":"stripe""#,
        r#","duration_ms":12,"event_type":"invoice.paid""#,
        r#","duration_ms":-1"#,
        r#","duration_ms":12,"status":"unheard_of""#,
        r#","duration_ms":12,"error_class":"unheard_of""#,
    ] {
        assert!(CONTRACT.problem(&report(broken)).is_some(), "{broken}");
    }
}

#[test]
fn the_schema_knows_exactly_the_codes_that_there_are() {
    let schema = schema();
    let listed = |pointer: &str| -> Vec<String> {
        let codes = schema.pointer(pointer).unwrap().as_array().unwrap();
        let codes = codes.iter().filter_map(|code| code.as_str());
        codes.map(str::to_owned).collect()
    };
    let classes = hookstead_domain::ErrorClass::ALL.iter();
    let classes: Vec<_> = classes.map(|class| class.as_str().to_owned()).collect();
    assert_eq!(listed("/properties/error_class/enum"), classes);
    let statuses = hookstead_domain::ReportStatus::ALL.iter();
    let statuses: Vec<_> = statuses.map(|status| status.as_str().to_owned()).collect();
    assert_eq!(listed("/properties/status/enum"), statuses);
}
