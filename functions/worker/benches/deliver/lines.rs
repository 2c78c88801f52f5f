//! One line of JSON each way between a process and its child.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use crate::child::Task;
use crate::process;

/// A child that is asked one thing after the other. It ends when this is dropped.
pub(crate) struct Asked {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Asked {
    pub(crate) fn start(task: &Task) -> anyhow::Result<Self> {
        let mut child = Command::new(process::program()?)
            .arg("--child")
            .arg(serde_json::to_string(task)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = child.stdout.take().context("the child has no output")?;
        Ok(Self {
            questions: child.stdin.take(),
            answers: BufReader::new(answers),
            child,
        })
    }

    /// The next line that the child says.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).context("the child said nothing that we know")
    }

    /// Asks for the next line.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let questions = self.questions.as_mut().context("the child has no input")?;
        questions.write_all(b"\n")?;
        questions.flush()?;
        self.hear()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Its input ends, and so does it. Nothing is left to do where it already has.
        self.questions = None;
        self.child.wait().ok();
    }
}
