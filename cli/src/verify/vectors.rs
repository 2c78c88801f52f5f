//! `hookstead verify --vectors`.

use std::path::Path;

use hookstead_signing::vectors::run_vector;

use crate::error::{Error, Exit};
use crate::output::{self, printable};

/// Runs every line that is not blank and ends with the counts.
pub(super) fn run(path: &Path) -> Result<Exit, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        doing: "cannot read",
        path: path.to_path_buf(),
        source,
    })?;
    let (mut passed, mut failed) = (0u64, 0u64);
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let outcome = run_vector(line);
        let Some(problem) = &outcome.problem else {
            passed += 1;
            continue;
        };
        failed += 1;
        let name = match outcome.name.as_str() {
            "" => format!("line {}", index + 1),
            name => format!("{}/{name}", outcome.provider),
        };
        output::line(&printable(&format!("FAIL {name}: {problem}")))?;
    }
    output::line(&format!("{passed} passed, {failed} failed"))?;
    Ok(if failed == 0 { Exit::Yes } else { Exit::No })
}
