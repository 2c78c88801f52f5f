//! The data directory: making it, and reading what a server wrote in it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{Doing as _, Error};
use crate::server::SUPERUSER;

/// The major version that made this data directory; `None` where there is none yet.
#[must_use]
pub fn data_dir_major(data_dir: &Path) -> Option<u16> {
    let text = std::fs::read_to_string(data_dir.join("PG_VERSION")).ok()?;
    text.trim().parse().ok()
}

/// What `postmaster.pid` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    pub(crate) port: u16,
    /// `starting`, `ready`, `stopping` or `standby`; empty before the server wrote it.
    pub(crate) status: String,
}

impl PidFile {
    /// Reads the file; `None` where it is absent or not yet whole.
    pub(crate) fn read(data_dir: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(data_dir.join("postmaster.pid")).ok()?)
    }

    /// Line 1 is the process, line 4 the port, line 8 the state, as pg_ctl reads them too.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            // A server in single-user mode writes its process id negated.
            pid: lines.first()?.trim_start_matches('-').parse().ok()?,
            port: lines.get(3)?.parse().ok()?,
            status: lines.get(7).copied().unwrap_or_default().to_owned(),
        })
    }
}

/// Makes the data directory unless it is there. It appears whole or not at all: initdb
/// fills a folder beside it, which is then renamed.
pub(crate) fn make(data_dir: &Path, binaries: &Binaries, account: Account) -> Result<(), Error> {
    if data_dir_major(data_dir).is_some() {
        return Ok(());
    }
    let partial = with_suffix(data_dir, ".partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).doing(|| format!("removing {}", partial.display()))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&partial)
        .doing(|| format!("making {}", partial.display()))?;
    account.own(&partial)?;
    let output = account
        .command(binaries.program("initdb"))
        .arg("--pgdata")
        .arg(&partial)
        .args([
            "--username",
            SUPERUSER,
            "--encoding",
            "UTF8",
            "--locale",
            "C",
        ])
        .args(["--auth", "trust", "--no-sync"])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .doing(|| "running initdb".to_owned())?;
    if !output.status.success() {
        return Err(Error::InitDb {
            data_dir: data_dir.to_path_buf(),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    std::fs::rename(&partial, data_dir).doing(|| format!("making {}", data_dir.display()))
}

/// `path` with `suffix` added to its last part: a neighbour on the same file system.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::PidFile;

    #[test]
    fn a_whole_pid_file_gives_process_port_and_state() {
        let text = "4711\n/data\n1700000000\n54321\n\n127.0.0.1\n  54321   7\nready   \n";
        let expected = PidFile {
            pid: 4711,
            port: 54321,
            status: "ready".to_owned(),
        };
        assert_eq!(PidFile::parse(text), Some(expected));
    }

    #[test]
    fn a_half_written_pid_file_gives_nothing() {
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("4711\n/data\n"), None);
    }
}
