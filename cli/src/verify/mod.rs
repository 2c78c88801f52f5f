//! `hookstead verify`: does this request verify, and if not, why. Offline.

mod input;
mod report;
mod vectors;

pub(crate) use input::read_file;

use std::path::PathBuf;

use hookstead_receiver::DedupeRule;
use hookstead_signing::{Candidate, Request, ValueRule};
use time::OffsetDateTime;

use crate::error::{Error, Exit};
use crate::output;
use crate::project::ProjectArguments;
use report::Report;

/// Say whether a request verifies, and if not, exactly why
///
/// Works offline and never prints a secret. Exit status 0: it verifies, 1: it does not.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run every line of a file of test vectors; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "source", "kind", "scheme", "secret_file", "request", "header", "body", "url", "method",
        "now", "tolerance_s",
    ])]
    vectors: Option<PathBuf>,
    /// Source of the manifest: its kind or scheme, secret, URL and window
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Signing kind, where it is not the source's
    #[arg(long, value_name = "KIND", conflicts_with = "source")]
    kind: Option<String>,
    /// File with a scheme of your own (docs/schemes.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "kind"])]
    scheme: Option<PathBuf>,
    /// File that holds the secret, where it is not the source's; repeat to try several
    #[arg(long, value_name = "FILE")]
    secret_file: Vec<PathBuf>,
    /// The whole request: request line, headers, a blank line, body. - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["header", "body"])]
    request: Option<PathBuf>,
    /// One header, 'Name: value'; repeat for each
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,
    /// File with the exact body bytes; - reads standard input
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// URL as the provider called it; some schemes sign it
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Method of the request
    #[arg(long, value_name = "METHOD", conflicts_with = "request")]
    method: Option<String>,
    /// Clock to check against, in Unix seconds, instead of now
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    now: Option<i64>,
    /// Window in seconds, instead of the source's or the kind's
    #[arg(long, value_name = "SECONDS")]
    tolerance_s: Option<u32>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    if let Some(path) = &arguments.vectors {
        return vectors::run(path, arguments.json);
    }
    let mut input = input::read(&arguments).await?;
    if let DedupeRule::At(place) = &input.dedupe {
        input.scheme.event.dedupe = Some(ValueRule::At(place.clone()));
    }
    let now = match arguments.now {
        Some(seconds) => OffsetDateTime::from_unix_timestamp(seconds)
            .map_err(|_| Error::usage("invalid_time", "--now is out of range"))?,
        None => OffsetDateTime::now_utc(),
    };
    let request = Request {
        method: &input.request.method,
        url: &input.url,
        headers: &input.request.headers,
        body: &input.request.body,
        decoded_body: input.decoded_body.as_deref(),
    };
    let candidates: Vec<Candidate<'_>> = input
        .secrets
        .iter()
        .map(|(label, secret)| Candidate { label, secret })
        .collect();
    let report = Report::new(&input.scheme, &request, &candidates, now, input.tolerance_s);
    let report = report
        .with_rule(&input.dedupe)
        .with_allowed(&input.allowed_event_types)
        .with_refusal(input.refused_coding)
        .with_hint(input.request.length_problem());
    if arguments.json {
        output::json(&report)?;
    } else {
        output::write(report.to_string().as_bytes())?;
    }
    Ok(if report.verifies() {
        Exit::Yes
    } else {
        Exit::No
    })
}
