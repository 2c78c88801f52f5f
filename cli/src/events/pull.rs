//! `hookstead events pull`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hookstead_store::pull_event;
use sha2::{Digest as _, Sha256};

use crate::database::connect_to_look;
use crate::error::{Doing as _, Error, Exit};
use crate::output;
use crate::project::ProjectArguments;

/// Write the exact bytes of one event's body
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The event, or the word last
    #[arg(value_name = "EVENT_ID")]
    id: String,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    project: ProjectArguments,
    /// With --output, print what was written as JSON
    #[arg(long, requires = "output")]
    json: bool,
}

pub(super) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut connection = connect_to_look(&arguments.project).await?;
    let id = super::resolve(&mut connection, &arguments.id).await?;
    let body = pull_event(&mut connection, id)
        .await
        .doing("cannot read the event")?;
    let body = body.ok_or_else(|| super::not_found(format!("there is no event {id}")))?;
    let Some(path) = &arguments.output else {
        output::write(&body)?;
        return Ok(Exit::Yes);
    };
    write_file(path, &body)?;
    let sha256 = hex::encode(Sha256::digest(&body));
    if arguments.json {
        let written = serde_json::json!({
            "event_id": id, "file": path, "bytes": body.len(), "sha256": sha256,
        });
        output::json(&written)?;
    } else {
        let shown = path.display();
        output::line(&format!("{shown}: {} bytes, SHA-256 {sha256}", body.len()))?;
    }
    Ok(Exit::Yes)
}

/// The file is for its owner alone: bodies hold what customers send.
fn write_file(path: &Path, body: &[u8]) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    opened
        .and_then(|mut file| file.write_all(body))
        .map_err(|source| Error::File {
            doing: "cannot write",
            path: path.to_path_buf(),
            source,
        })
}
