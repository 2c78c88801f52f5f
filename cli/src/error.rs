//! What goes wrong for the user, with a stable code and the exit status that follows.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use crate::manifest::Problems;

/// How the process ends. docs/cli.md lists these for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done, and the answer is yes.
    Yes = 0,
    /// Done, and the answer is no: refused, not found, does not verify.
    No = 1,
    /// The command line, the manifest or the configuration cannot be used.
    Usage = 2,
    /// Something that the command needs could not be reached or started.
    Unreachable = 3,
}

/// Why a command could not do its work. Messages hold no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The manifest has problems; all of them are in the message.
    #[error(transparent)]
    Manifest(#[from] Problems),
    /// Something in the arguments or the environment cannot be used.
    #[error("{message}")]
    Usage { code: &'static str, message: String },
    /// The thing that was asked about is not there.
    #[error("{message}")]
    NotFound { code: &'static str, message: String },
    /// What was asked for was understood and refused.
    #[error("{message}")]
    Refused { code: &'static str, message: String },
    /// A file or folder could not be read or written.
    #[error("{doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The address for the local server is not free.
    #[error("{address} is taken: another program listens on port {port}. Stop it, or choose another port: hookstead {command} --listen 127.0.0.1:PORT", port = address.port())]
    PortTaken {
        address: std::net::SocketAddr,
        /// The command that wanted it.
        command: &'static str,
    },
    /// The local server could not listen.
    #[error("cannot listen on {address}")]
    Listen {
        address: std::net::SocketAddr,
        #[source]
        source: io::Error,
    },
    /// Another `dev` has this project.
    #[error("another `hookstead dev` already runs in {}", folder.display())]
    AlreadyRunning { folder: PathBuf },
    /// PostgreSQL could not be found, fetched or run.
    #[error(transparent)]
    Postgres(#[from] hookstead_localpg::Error),
    /// The database refused or could not be reached.
    #[error("{doing}")]
    Store {
        doing: &'static str,
        #[source]
        source: hookstead_store::StoreError,
    },
    /// The key of the secrets could not be used.
    #[error("the key of signing secrets cannot be used")]
    Key {
        #[source]
        source: hookstead_aws::keys::KeyError,
    },
    /// No database is known.
    #[error("no database: HOOKSTEAD_DATABASE_URL is not set, and no `hookstead dev` runs in {}", folder.display())]
    NoDatabase { folder: PathBuf },
    /// Nobody to send to.
    #[error("no `hookstead dev` runs in {}: start it, or name an address with --url", folder.display())]
    NotRunning { folder: PathBuf },
    /// An HTTP request could not be made.
    #[error("cannot reach {url}")]
    Http {
        url: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A signal handler, a random number, a pipe: the system refused.
    #[error("{doing}")]
    System {
        doing: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn usage(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Usage { code, message }
    }

    /// The stable code that scripts may compare.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Manifest(_) => "manifest_invalid",
            Self::Usage { code, .. } | Self::NotFound { code, .. } | Self::Refused { code, .. } => {
                code
            }
            Self::File { .. } => "file_unusable",
            Self::PortTaken { .. } => "port_taken",
            Self::Listen { .. } => "cannot_listen",
            Self::AlreadyRunning { .. } => "already_running",
            Self::Postgres(_) => "postgres_unavailable",
            Self::Store { source, .. } if source.is_transient() => "database_unreachable",
            Self::Store { .. } => "database_refused",
            Self::Key { .. } => "key_unusable",
            Self::NoDatabase { .. } => "no_database",
            Self::NotRunning { .. } => "dev_not_running",
            Self::Http { .. } => "http_unreachable",
            Self::System { .. } => "system",
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Manifest(_) | Self::Usage { .. } | Self::File { .. } => Exit::Usage,
            Self::NotFound { .. } | Self::Refused { .. } => Exit::No,
            _ => Exit::Unreachable,
        }
    }

    /// Prints the error and its causes to standard error.
    pub(crate) fn print(&self) {
        eprintln!("error[{}]: {self}", self.code());
        for because in self.causes() {
            eprintln!("  because: {because}");
        }
    }

    /// The causes, each said once: some messages hold that of their cause.
    fn causes(&self) -> Vec<String> {
        let mut said = self.to_string();
        let mut causes = Vec::new();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !said.ends_with(&text) {
                causes.push(text.clone());
            }
            said = text;
            cause = error.source();
        }
        causes
    }
}

/// Adds what was being done to the errors of other crates.
pub(crate) trait Doing<T> {
    /// The same result with an error that says what was being done.
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::System { doing, source })
    }
}

impl<T> Doing<T> for Result<T, hookstead_store::StoreError> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Store { doing, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_store::{ConnectionFault, StoreError};

    #[test]
    fn a_cause_that_a_message_holds_already_is_not_said_again() {
        let fault = ConnectionFault::Io(io::ErrorKind::ConnectionRefused);
        let error = Error::Store {
            doing: "cannot connect",
            source: StoreError::Connection(fault),
        };
        let said = "the connection to the database failed: connection refused";
        assert_eq!(error.causes(), [said]);
    }
}
