//! `hookstead verify --vectors`.

use std::path::Path;

use hookstead_signing::vectors::run_vector;
use serde::Serialize;

use super::input::read_file;
use crate::error::{Error, Exit};
use crate::output::{self, printable};

/// How a file of vectors went.
#[derive(Debug, Default, Serialize)]
struct Tally {
    passed: u64,
    failed: u64,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    /// The line in the file, from 1.
    line: usize,
    provider: String,
    name: String,
    problem: String,
}

/// Runs every line that is not blank and ends with the counts.
pub(super) fn run(path: &Path, as_json: bool) -> Result<Exit, Error> {
    let bytes = read_file(path)?;
    let mut tally = Tally::default();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        // Bytes that are not UTF-8 cannot be in a vector; such a line fails as what it is.
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() {
            continue;
        }
        let outcome = run_vector(&line);
        let Some(problem) = outcome.problem else {
            tally.passed += 1;
            continue;
        };
        tally.failed += 1;
        let failure = Failure {
            line: index + 1,
            provider: outcome.provider,
            name: outcome.name,
            problem,
        };
        if as_json {
            tally.failures.push(failure);
        } else {
            output::line(&failure.to_line())?;
        }
    }
    if as_json {
        output::json(&tally)?;
    } else {
        output::line(&format!("{} passed, {} failed", tally.passed, tally.failed))?;
    }
    Ok(if tally.failed == 0 {
        Exit::Yes
    } else {
        Exit::No
    })
}

impl Failure {
    fn to_line(&self) -> String {
        let name = match self.name.as_str() {
            "" => format!("line {}", self.line),
            name => format!("{}/{name}", self.provider),
        };
        printable(&format!("FAIL {name}: {}", self.problem))
    }
}
