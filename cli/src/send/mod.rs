//! `hookstead send`: a sample webhook, signed like the provider signs.

mod target;

use std::path::PathBuf;

use hookstead_signing::{
    Candidate, Extracted, Headers, Request, SignInput, Signed, extract, sample, sign, verify,
};
use serde_json::json;
use time::OffsetDateTime;
use url::Url;

use crate::chance;
use crate::error::{Error, Exit};
use crate::http_client::{self, Received, authority};
use crate::output::{self, bad, dim, good, printable};
use crate::project::ProjectArguments;
use crate::raw_request::RawRequest;
use target::Target;

/// Sign a sample webhook and post it
///
/// Signs a realistic sample of a kind with the source's development secret and
/// posts it to the running `hookstead dev`. Exit status 0: accepted, 1: refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Signing kind, or the name of a source of the manifest
    #[arg(value_name = "KIND")]
    kind: String,
    /// Event type; without it, a usual one of the kind
    #[arg(value_name = "TYPE")]
    event_type: Option<String>,
    /// Source to send to, where several are of this kind
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Address to post to, instead of the running `dev`
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Send these bytes as the body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Id of the event; the same id twice is the same event
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Sign with this secret, instead of the source's; others can read a command line
    #[arg(long, value_name = "TEXT", conflicts_with = "secret_file")]
    secret: Option<String>,
    /// Sign with the secret in this file, instead of the source's
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Change one byte of the body after it was signed
    #[arg(long)]
    tamper: bool,
    /// Print the request instead of sending it; `hookstead verify --request -` reads it
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print the answer as JSON
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let target = target::find(&arguments).await?;
    let message = message(&arguments, &target)?;
    if arguments.print {
        output::write(&message.request.to_bytes())?;
        return Ok(Exit::Yes);
    }
    let received = http_client::send(&message.request, &message.url).await?;
    let accepted = (200..300).contains(&received.status);
    if arguments.json {
        print_json(&message, &received)?;
    } else {
        print(&message, &received, &arguments)?;
    }
    Ok(if accepted { Exit::Yes } else { Exit::No })
}

impl Arguments {
    /// The words that make the same request again, for a shell. A secret on the command
    /// line is not repeated.
    fn again(&self, source: &str) -> String {
        let mut words = vec!["send".to_owned(), source.to_owned()];
        words.extend(self.event_type.as_deref().map(quoted));
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let options = [
            ("--manifest", self.other_manifest()),
            ("--url", self.url.as_ref().map(repeated_url)),
            ("--body", self.body.as_ref().map(path)),
            ("--id", self.id.as_deref().map(quoted)),
            ("--secret", self.secret.as_ref().map(|_| "TEXT".to_owned())),
            ("--secret-file", self.secret_file.as_ref().map(path)),
        ];
        for (name, value) in options {
            words.extend(value.map(|value| format!("{name} {value}")));
        }
        words.extend(self.tamper.then(|| "--tamper".to_owned()));
        words.join(" ")
    }

    /// The manifest, where it is another one than everybody's.
    fn other_manifest(&self) -> Option<String> {
        let path = &self.project.manifest;
        (path.as_os_str() != "hookstead.toml").then(|| quoted(&path.display().to_string()))
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A signed request on its way.
struct Message {
    request: RawRequest,
    url: Url,
    /// The event's own id, where the receiver finds one.
    id: Option<String>,
    event_type: String,
    source_name: Option<String>,
}

fn message(arguments: &Arguments, target: &Target) -> Result<Message, Error> {
    let now = OffsetDateTime::now_utc();
    let id = match &arguments.id {
        Some(id) => id.clone(),
        None => chance::id("evt_")?,
    };
    let event_type = arguments.event_type.as_deref();
    let mut sample = sample(&target.kind, &target.scheme, event_type, &id, now);
    if let Some(path) = &arguments.body {
        sample.body = std::fs::read(path).map_err(|source| Error::File {
            doing: "cannot read",
            path: path.clone(),
            source,
        })?;
    }
    let input = SignInput {
        method: "POST",
        url: &target.signed_url,
        headers: &sample.headers,
        body: &sample.body,
        now,
        id: &id,
    };
    let signed = sign(&target.scheme, &target.secret, &input)
        .map_err(|error| Error::usage("cannot_sign", error.to_string()))?;
    let read = read_back(target, &signed, now);
    let mut url = target.url.clone();
    // Some schemes put the signature into the query.
    if signed.url != target.signed_url {
        let query = signed.url.split_once('?').map(|(_, query)| query);
        url.set_query(query);
    }
    let mut body = signed.body;
    if arguments.tamper {
        tamper(&mut body);
    }
    Ok(Message {
        request: request(&url, &signed.headers, body),
        url,
        id: read.event_id,
        event_type: read.event_type.unwrap_or(sample.event_type),
        source_name: target.source_name.clone(),
    })
}

/// What the receiver will read from the request: a body of the user's own has an id and
/// a type of its own.
fn read_back(target: &Target, signed: &Signed, now: OffsetDateTime) -> Extracted {
    let request = Request {
        method: "POST",
        url: &signed.url,
        headers: &signed.headers,
        body: &signed.body,
        decoded_body: None,
    };
    let candidate = Candidate {
        label: "current",
        secret: &target.secret,
    };
    verify(&target.scheme, &request, &[candidate], now, None)
        .map(|verified| extract(&target.scheme, &request, &verified))
        .unwrap_or_default()
}

fn request(url: &Url, signed: &Headers, body: Vec<u8>) -> RawRequest {
    let mut headers = Headers::new();
    headers.push("Host", authority(url));
    headers.push(
        "User-Agent",
        concat!("hookstead-send/", env!("CARGO_PKG_VERSION")),
    );
    for (name, value) in signed.iter() {
        headers.push(name, value);
    }
    headers.push("Content-Length", body.len().to_string());
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    RawRequest {
        method: "POST".to_owned(),
        target: format!("{}{query}", url.path()),
        headers,
        body,
    }
}

/// Changes a digit, so that JSON stays JSON; without one, adds a blank.
fn tamper(body: &mut Vec<u8>) {
    match body.iter_mut().rev().find(|byte| byte.is_ascii_digit()) {
        Some(byte) => *byte = if *byte == b'9' { b'0' } else { *byte + 1 },
        None => body.push(b' '),
    }
}

fn print_json(message: &Message, received: &Received) -> Result<(), Error> {
    let text = String::from_utf8_lossy(&received.body).into_owned();
    let answer = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
    output::json(&json!({
        "url": shown_url(&message.url), "id": message.id, "type": message.event_type,
        "bytes": message.request.body.len(), "status": received.status, "answer": answer,
    }))
}

fn print(message: &Message, received: &Received, arguments: &Arguments) -> Result<(), Error> {
    let (url, event_type) = (shown_url(&message.url), &message.event_type);
    let id = message.id.as_deref().unwrap_or("(no id)");
    let bytes = message.request.body.len();
    let sent = format!("POST {url}  {event_type}  {id}  {bytes} bytes");
    output::line(&printable(&sent))?;
    let answer = printable(&String::from_utf8_lossy(&received.body));
    let status = received.status.to_string();
    let accepted = (200..300).contains(&received.status);
    let status = if accepted {
        good(&status)
    } else {
        bad(&status)
    };
    output::line(&format!("{status} {answer}"))?;
    if let (401, Some(source)) = (received.status, &message.source_name) {
        let program = output::program();
        let again = arguments.again(source);
        let manifest = arguments.other_manifest();
        let manifest = manifest.map_or_else(String::new, |path| format!(" --manifest {path}"));
        let why = format!(
            "{program} {again} --print | {program} verify --source {source}{manifest} --request -"
        );
        output::line(&dim(&printable(&format!("To see why: {why}"))))?;
    }
    for (name, value) in received
        .headers
        .iter()
        .filter(|(name, _)| name == "retry-after")
    {
        output::line(&printable(&format!("{name}: {value}")))?;
    }
    Ok(())
}

/// The address without what may be a secret: its user, its password, its query.
fn shown_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Only addresses without a host refuse this, and those have no user either.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}

/// The address for a command to copy, where nothing of it may be a secret.
fn repeated_url(url: &Url) -> String {
    if shown_url(url) == url.as_str() {
        quoted(url.as_str())
    } else {
        "URL".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_password_and_no_token() {
        let url: Url = "https://u:CANARY@h.test/x?token=CANARY".parse().unwrap();
        assert_eq!(shown_url(&url), "https://h.test/x");
        assert_eq!(repeated_url(&url), "URL");
        let plain: Url = "https://h.test/x".parse().unwrap();
        assert_eq!(repeated_url(&plain), "https://h.test/x");
    }

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        assert_eq!(quoted("a-b/c.json"), "a-b/c.json");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's a"), r"'it'\''s a'");
    }
}
