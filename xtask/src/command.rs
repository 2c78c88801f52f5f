//! Running other programs.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::tally::Tally;
use crate::workspace;

/// A cargo command in the repository's root, by the cargo that runs us.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace::root());
    // The variables cargo sets for us say nothing about the packages it builds next.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "DATABASE_URL"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command whose output goes to ours; says whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("running {}", name_of(command)))?;
    Ok(status.success())
}

/// Runs a command that runs tests, passes its output on, and counts the tests in it.
/// A run that fails without a failed test (it did not compile) counts as one failure.
pub(crate) fn count_tests(command: &mut Command) -> anyhow::Result<Tally> {
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("running {}", name_of(command)))?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("reading the output of the tests")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally += Tally::of_line(&line);
        }
    }
    let status = child.wait().context("waiting for the tests")?;
    if !status.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    Ok(tally)
}

fn name_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
