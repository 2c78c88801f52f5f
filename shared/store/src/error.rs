//! What can go wrong between us and PostgreSQL.
//!
//! The server's own messages quote the values of the row they are about. None of
//! that gets past this module: an error is reduced to codes and names when it is
//! made, so that no later `Debug` or source chain can print more.

use std::fmt;
use std::io;

/// SQLSTATE of an aborted login or session that a fresh connection may cure:
/// shut down, crashed, starting up, or demoted to a read-only replica.
const CURED_BY_RECONNECTING: [&str; 4] = ["57P01", "57P02", "57P03", "25006"];

/// SQLSTATE classes that pass by themselves: connection, rollback, resources,
/// operator intervention, system.
const TRANSIENT_CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];

/// Single states that pass by themselves: a lock not granted in time, and a
/// server that is read-only for the moment.
const TRANSIENT_STATES: [&str; 2] = ["55P03", "25006"];

/// An operation that did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The server answered with an error.
    #[error("the database refused: {0}")]
    Refused(#[source] Refusal),
    /// The server could not be reached, or the link to it broke.
    #[error("the connection to the database failed: {0}")]
    Connection(#[source] ConnectionFault),
    /// All connections stayed busy for as long as we wait.
    #[error("no database connection became free in time")]
    AcquireTimeout,
    /// The database was asked and gave no answer for as long as we wait.
    #[error("the database did not answer in time")]
    Silent,
    /// The database could not be reached as it was configured.
    #[error("the database connection is misconfigured")]
    Misconfigured,
    /// An answer did not have the shape the code was compiled for.
    #[error("the database answered in an unexpected shape ({0})")]
    Unexpected(String),
    /// A migration failed; the ones before it stay applied.
    #[error("migration {version} failed: {refusal}")]
    Migration {
        /// Its number.
        version: i64,
        /// What the server said.
        #[source]
        refusal: Refusal,
    },
    /// The database was migrated by another version of the product.
    #[error("the database's migrations do not fit this version: {0}")]
    MigrationHistory(String),
    /// The database cannot hold what it must hold.
    #[error("the database is unsuitable: {0}")]
    Unsuitable(&'static str),
    /// The manifest cannot be applied.
    #[error(transparent)]
    Manifest(#[from] crate::manifest::ManifestError),
}

/// What the server said, without the values it said it about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Five characters, as listed in PostgreSQL's manual under "Error Codes".
    pub sqlstate: String,
    /// The constraint that was violated, if one was.
    pub constraint: Option<String>,
    /// The table it is about, if it is about one.
    pub table: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SQLSTATE {}", self.sqlstate)?;
        if let Some(meaning) = self.meaning() {
            write!(f, " ({meaning})")?;
        }
        if let Some(constraint) = &self.constraint {
            write!(f, ", constraint {constraint}")?;
        }
        if let Some(table) = &self.table {
            write!(f, ", table {table}")?;
        }
        Ok(())
    }
}

/// How a connection failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// The operating system's view of it.
    #[error("{0}")]
    Io(io::ErrorKind),
    /// No secure channel could be made.
    #[error("no TLS channel")]
    Tls,
    /// The other side does not speak PostgreSQL's protocol, or the stream is torn.
    #[error("protocol violation")]
    Protocol,
    /// It took too long to open.
    #[error("it did not open in time")]
    ConnectTimeout,
    /// A connection that had been idle gave no answer.
    #[error("an idle connection gave no answer in time")]
    Silent,
    /// The credentials for a new connection could not be made.
    #[error("no credentials")]
    Credentials,
}

impl StoreError {
    /// Whether the same operation may succeed later without anyone changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connection(_) | Self::AcquireTimeout | Self::Silent => true,
            Self::Refused(refusal) => refusal.is_transient(),
            _ => false,
        }
    }

    /// Whether a row found no partition of its day. Maintenance makes it, so the row is
    /// written later; but only that row waits for it, and whoever writes several at once
    /// must not let it hold up the others.
    #[must_use]
    pub fn is_missing_partition(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_missing_partition(),
            _ => false,
        }
    }

    /// The server's error code, where the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) | Self::Migration { refusal, .. } => Some(&refusal.sqlstate),
            _ => None,
        }
    }

    /// The violated constraint, where one was.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => refusal.constraint.as_deref(),
            _ => None,
        }
    }

    /// Whether the connection is lost but a fresh one may do.
    #[must_use]
    pub fn is_broken_connection(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Refused(refusal) => {
                refusal.class() == "08"
                    || CURED_BY_RECONNECTING.contains(&refusal.sqlstate.as_str())
            }
            _ => false,
        }
    }
}

impl Refusal {
    fn class(&self) -> &str {
        self.sqlstate.get(..2).unwrap_or_default()
    }

    /// What an operator would look up, for states that are theirs to mend.
    fn meaning(&self) -> Option<&'static str> {
        Some(match self.sqlstate.as_str() {
            "28000" => "the user may not log in, or not this way",
            "28P01" => "wrong password",
            "3D000" => "there is no such database",
            "3F000" | "42883" | "42P01" => {
                "a part of the schema is missing: the database is not migrated to this version"
            }
            "42501" => "the user lacks a right that this needs",
            "53100" => "the disk is full",
            "53300" => "too many connections",
            "57014" => "it took too long",
            _ => return None,
        })
    }

    fn is_transient(&self) -> bool {
        TRANSIENT_CLASSES.contains(&self.class())
            || TRANSIENT_STATES.contains(&self.sqlstate.as_str())
            || self.is_missing_partition()
    }

    /// A row that no day partition takes is refused like a violated check, but no
    /// constraint is named. Maintenance makes the partition.
    fn is_missing_partition(&self) -> bool {
        self.sqlstate == "23514" && self.constraint.is_none()
    }

    fn of(error: &dyn sqlx::error::DatabaseError) -> Self {
        Self {
            sqlstate: error.code().map(Into::into).unwrap_or_default(),
            constraint: error.constraint().map(str::to_owned),
            table: error.table().map(str::to_owned),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => Self::Refused(Refusal::of(&*error)),
            sqlx::Error::Io(error) => Self::Connection(ConnectionFault::Io(error.kind())),
            sqlx::Error::Tls(_) => Self::Connection(ConnectionFault::Tls),
            sqlx::Error::Protocol(_) => Self::Connection(ConnectionFault::Protocol),
            sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => Self::Misconfigured,
            sqlx::Error::RowNotFound => Self::Unexpected("no row".to_owned()),
            sqlx::Error::ColumnDecode { index, .. } => Self::Unexpected(format!("column {index}")),
            sqlx::Error::ColumnNotFound(name) => Self::Unexpected(format!("no column {name}")),
            sqlx::Error::TypeNotFound { type_name } => {
                Self::Unexpected(format!("no type {type_name}"))
            }
            _ => Self::Unexpected("driver".to_owned()),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            MigrateError::Execute(error) => error.into(),
            MigrateError::ExecuteMigration(sqlx::Error::Database(error), version) => {
                Self::Migration {
                    version,
                    refusal: Refusal::of(&*error),
                }
            }
            MigrateError::ExecuteMigration(error, _) => error.into(),
            // The others name versions and files, never rows.
            other => Self::MigrationHistory(other.to_string()),
        }
    }
}
