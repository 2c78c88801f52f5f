//! The server's log file.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::cluster::with_suffix;
use crate::error::{Doing as _, Error};

/// How much of the log an error shows.
const TAIL_LINES: usize = 12;

/// The log starts afresh past this size; the one before is kept beside it.
const LOG_LIMIT_BYTES: u64 = 8 * 1024 * 1024;

/// The log file of a data directory.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("server.log")
}

/// Starts the log afresh where it has grown past its limit.
pub(crate) fn rotate(log: &Path) -> Result<(), Error> {
    if std::fs::metadata(log).is_ok_and(|found| found.len() > LOG_LIMIT_BYTES) {
        let before = with_suffix(log, ".1");
        std::fs::rename(log, &before).doing(|| format!("making {}", before.display()))?;
    }
    Ok(())
}

/// What was written to a file past an offset; empty where it cannot be read.
pub(crate) fn read_from(path: &Path, offset: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// The error of a start that failed, with the end of what was logged past an offset.
pub(crate) fn start_error(data_dir: &Path, log_start: u64, problem: &str) -> Error {
    let log = path(data_dir);
    let text = read_from(&log, log_start);
    let lines: Vec<&str> = text.lines().collect();
    Error::Start {
        problem: problem.to_owned(),
        log,
        tail: lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
    }
}
