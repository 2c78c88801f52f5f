//! Which database a command uses, and as whom.

use hookstead_store::StoreError;
use serde::{Deserialize, Serialize};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::error::{Doing as _, Error};
use crate::project::{Project, ProjectArguments, Running};

/// The variable that names a database other than the one of `dev`.
const URL_VARIABLE: &str = "HOOKSTEAD_DATABASE_URL";

/// Whom a command acts as. Each has the least rights that do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Stores events, reads nothing back.
    Receiver,
    /// Reads everything and writes sources and subscriptions.
    Admin,
    /// Publishes events, and nothing else.
    Publisher,
    /// Claims and ends attempts.
    Worker,
    /// Moves on what waits.
    Relay,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Receiver => "hookstead_receiver",
            Self::Admin => "hookstead_admin",
            Self::Publisher => "hookstead_publisher",
            Self::Worker => "hookstead_worker",
            Self::Relay => "hookstead_relay",
        }
    }
}

/// How a connection becomes one of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignIn {
    /// The user of the URL logs in and then acts as the role, with its rights alone.
    SetRole,
    /// The user of the URL is whom the operator chose; nothing is changed.
    AsGiven,
}

/// A database and the way into it. The URL may hold a password: no `Debug` shows it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Database {
    url: String,
    sign_in: SignIn,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("sign_in", &self.sign_in)
            .finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn new(url: impl Into<String>, sign_in: SignIn) -> Self {
        let url = url.into();
        Self { url, sign_in }
    }

    /// The database for looking and applying: the one of `HOOKSTEAD_DATABASE_URL`,
    /// else that of the running `dev`.
    pub(crate) fn in_use(project: &Project) -> Result<Self, Error> {
        if let Some(url) = given_url() {
            return Ok(Self::new(url, SignIn::AsGiven));
        }
        match project.running() {
            Some(running) => Ok(running.database),
            None => Err(Error::NoDatabase {
                folder: project.folder().to_path_buf(),
            }),
        }
    }

    /// The running `dev` of the project, where its database is the one in use.
    pub(crate) fn of_running(project: &Project) -> Option<Running> {
        let running = project.running()?;
        let given = given_url();
        let same = given.is_none_or(|url| url == running.database.url);
        same.then_some(running)
    }

    /// How to connect as the user of the URL.
    pub(crate) fn options(&self) -> Result<PgConnectOptions, Error> {
        let parsed: Result<PgConnectOptions, sqlx::Error> = self.url.parse();
        // The parser's own message may quote the URL with its password.
        let options = parsed.map_err(|_| {
            Error::usage(
                "invalid_database_url",
                format!("{URL_VARIABLE} is no PostgreSQL URL"),
            )
        })?;
        // Values bound to statements would be logged with slow ones.
        Ok(options.disable_statement_logging())
    }

    /// How to connect as a role.
    pub(crate) fn options_as(&self, role: Role) -> Result<PgConnectOptions, Error> {
        let options = self.options()?;
        Ok(match self.sign_in {
            SignIn::SetRole => options.options([("role", role.name())]),
            SignIn::AsGiven => options,
        })
    }

    /// A connection as a role.
    pub(crate) async fn connect_as(&self, role: Role) -> Result<PgConnection, Error> {
        connect(self.options_as(role)?).await
    }

    /// The same for whoever tries again: it says how it failed, and whether that may pass.
    pub(crate) async fn open_as(&self, role: Role) -> Result<PgConnection, StoreError> {
        let options = self
            .options_as(role)
            .map_err(|_| StoreError::Misconfigured)?;
        Ok(PgConnection::connect_with(&options).await?)
    }

    /// A connection as the user of the URL.
    pub(crate) async fn connect(&self) -> Result<PgConnection, Error> {
        connect(self.options()?).await
    }
}

/// A connection to the database in use, for looking at what is there.
pub(crate) async fn connect_to_look(arguments: &ProjectArguments) -> Result<PgConnection, Error> {
    let project = Project::of(arguments)?;
    Database::in_use(&project)?.connect_as(Role::Admin).await
}

async fn connect(options: PgConnectOptions) -> Result<PgConnection, Error> {
    let connected = PgConnection::connect_with(&options).await;
    connected
        .map_err(StoreError::from)
        .doing("cannot connect to the database")
}

/// `HOOKSTEAD_DATABASE_URL`, where it is set and not empty.
pub(crate) fn given_url() -> Option<String> {
    std::env::var(URL_VARIABLE)
        .ok()
        .filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_by_nothing() {
        let database = Database::new("postgres://u:CANARY@h/d", SignIn::AsGiven);
        assert!(!format!("{database:?}").contains("CANARY"));
        let broken = Database::new("postgres://u:CANARY@h:notaport/d", SignIn::AsGiven);
        let error = broken.options().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("CANARY"));
    }
}
