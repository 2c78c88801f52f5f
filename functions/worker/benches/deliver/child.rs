//! The processes that this one starts from its own program.

use std::process::Stdio;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::subject::{self, Measured, Site};
use crate::{process, sink};

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Answer requests and count them.
    Sink,
    /// Work off the messages in a file.
    Deliver {
        site: Site,
        messages: std::path::PathBuf,
        count: usize,
    },
    /// Send the same requests as `Deliver`, so many at once, and nothing else.
    Client {
        site: Site,
        sealed: subject::Sealed,
        count: usize,
        at_once: usize,
    },
    /// Receive so many requests, so many at once, and deliver them.
    Receive {
        site: Site,
        count: usize,
        senders: usize,
    },
}

/// Does the task, in the child.
pub(crate) fn run(task: Task) -> anyhow::Result<()> {
    // One thread, as the functions and `dev` have.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured = runtime.block_on(async {
        Ok::<_, anyhow::Error>(match task {
            Task::Sink => {
                sink::serve().await?;
                None
            }
            Task::Deliver {
                site,
                messages,
                count,
            } => Some(subject::deliver::run(&site, &messages, count).await?),
            Task::Client {
                site,
                sealed,
                count,
                at_once,
            } => Some(subject::client::run(&site, sealed, count, at_once).await?),
            Task::Receive {
                site,
                count,
                senders,
            } => Some(subject::receive::run(&site, count, senders).await?),
        })
    })?;
    if let Some(measured) = measured {
        println!("{}", serde_json::to_string(&measured)?);
    }
    Ok(())
}

/// Has a child do the task, and waits for what it measured.
pub(crate) async fn measure(task: Task) -> anyhow::Result<Measured> {
    let output = Command::new(process::program()?)
        .arg("--child")
        .arg(serde_json::to_string(&task)?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .await
        .context("running the measured process")?;
    anyhow::ensure!(output.status.success(), "the measured process failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}
