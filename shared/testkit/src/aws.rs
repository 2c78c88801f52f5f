//! An emulator of AWS: SQS, KMS, EventBridge and more, on 127.0.0.1.

mod install;
mod process;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The only region and account that tests use.
const REGION: &str = "us-east-1";

/// The emulator of this test process. Copies are the same one; every name that it
/// gives out is a new one, so tests run in parallel.
#[derive(Clone, Copy, Debug)]
pub struct Emulator {
    port: u16,
}

/// The emulator, fetched once per machine with pip and started once per test process.
///
/// # Panics
/// Where it cannot be fetched or started; the panic's sentence says what to do.
#[must_use]
pub async fn aws() -> Emulator {
    let port = tokio::task::spawn_blocking(process::port).await;
    match port {
        Ok(port) => Emulator { port },
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

impl Emulator {
    /// Its address, for `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The environment variables with which a client of AWS uses it.
    #[must_use]
    pub fn variables(self) -> [(&'static str, String); 4] {
        // The credentials are worth nothing, and the emulator does not look at them.
        [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ]
    }

    /// The value of one of [`Emulator::variables`].
    #[must_use]
    pub fn variable(self, name: &str) -> Option<String> {
        let found = self.variables().into_iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// A name that nobody else has, starting with this one.
    #[must_use]
    pub fn unique(self, name: &str) -> String {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        format!("{name}-{number}")
    }

    /// Makes an SQS queue of a new name that starts with this one, and gives its URL.
    /// Attributes as in SQS's own CreateQueue.
    ///
    /// # Panics
    /// Where the emulator refuses.
    pub async fn create_queue(self, name: &str, attributes: &[(&str, String)]) -> String {
        let attributes: serde_json::Map<String, Value> = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
            .collect();
        let asked = json!({ "QueueName": self.unique(name), "Attributes": attributes });
        let answer = self.call("sqs", "AmazonSQS.CreateQueue", &asked).await;
        text(&answer, "/QueueUrl")
    }

    /// The ARN of a queue.
    ///
    /// # Panics
    /// Where there is no such queue.
    pub async fn queue_arn(self, url: &str) -> String {
        let asked = json!({ "QueueUrl": url, "AttributeNames": ["QueueArn"] });
        let answer = self
            .call("sqs", "AmazonSQS.GetQueueAttributes", &asked)
            .await;
        text(&answer, "/Attributes/QueueArn")
    }

    /// Makes a queue whose messages go to the second one, its queue of dead letters, after
    /// so many receives. Gives the URLs of both.
    ///
    /// # Panics
    /// Where the emulator refuses.
    pub async fn create_queue_with_dead_letters(
        self,
        name: &str,
        max_receives: u32,
        visibility_timeout_s: u32,
    ) -> (String, String) {
        let timeout = ("VisibilityTimeout", visibility_timeout_s.to_string());
        let dead = self
            .create_queue(&format!("{name}-dead"), std::slice::from_ref(&timeout))
            .await;
        let policy = json!({
            "deadLetterTargetArn": self.queue_arn(&dead).await,
            "maxReceiveCount": max_receives,
        });
        let attributes = [timeout, ("RedrivePolicy", policy.to_string())];
        (self.create_queue(name, &attributes).await, dead)
    }

    /// Makes a symmetric KMS key and gives its ARN.
    ///
    /// # Panics
    /// Where the emulator refuses.
    pub async fn create_key(self) -> String {
        let answer = self.call("kms", "TrentService.CreateKey", &json!({})).await;
        text(&answer, "/KeyMetadata/Arn")
    }

    /// Makes an EventBridge bus of a new name that starts with this one, with a rule that
    /// sends all its events to the queue of this ARN. Gives the bus's name.
    ///
    /// # Panics
    /// Where the emulator refuses.
    pub async fn create_bus_into(self, name: &str, queue_arn: &str) -> String {
        let bus = self.unique(name);
        let pattern = json!({ "account": ["123456789012"] }).to_string();
        let calls = [
            ("CreateEventBus", json!({ "Name": bus })),
            (
                "PutRule",
                json!({ "Name": "all", "EventBusName": bus, "EventPattern": pattern }),
            ),
            (
                "PutTargets",
                json!({
                    "Rule": "all",
                    "EventBusName": bus,
                    "Targets": [{ "Id": "queue", "Arn": queue_arn }],
                }),
            ),
        ];
        for (operation, asked) in calls {
            self.call("events", &format!("AWSEvents.{operation}"), &asked)
                .await;
        }
        bus
    }

    /// One call of a service that speaks AWS's JSON protocol, and its answer.
    ///
    /// # Panics
    /// Where the answer is an error.
    pub async fn call(self, service: &str, target: &str, asked: &Value) -> Value {
        let (head, body) = self.post(service, target, &asked.to_string()).await;
        assert!(
            head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.0 200"),
            "the AWS emulator refused {target}: {body}"
        );
        if body.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&body).expect("the emulator answers in JSON")
    }

    async fn post(self, service: &str, target: &str, body: &str) -> (String, String) {
        // The emulator checks no signature; it reads the service from where one says it.
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {service}.{REGION}.amazonaws.com\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, \
             SignedHeaders=host, Signature=test\r\nX-Amz-Target: {target}\r\n\
             Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .await
            .expect("the emulator listens");
        connection
            .write_all(request.as_bytes())
            .await
            .expect("the emulator reads");
        let mut answer = String::new();
        connection
            .read_to_string(&mut answer)
            .await
            .expect("the emulator answers");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        (head.to_owned(), body.to_owned())
    }
}

fn text(answer: &Value, place: &str) -> String {
    let found = answer.pointer(place).and_then(Value::as_str);
    found.expect("the emulator's answer has it").to_owned()
}
