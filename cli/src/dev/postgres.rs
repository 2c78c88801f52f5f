//! The database of `dev`: one that is given, or a server of its own.

use hookstead_localpg::{Binaries, Error as PostgresError, Options, Server, project_data_dir};
use hookstead_store::StoreError;
use sqlx::Postgres;
use sqlx::migrate::MigrateDatabase as _;

use crate::database::{Database, SignIn, given_url};
use crate::error::{Doing as _, Error};
use crate::project::Project;

/// The name of the database on the server of `dev`.
const DATABASE: &str = "hookstead";

/// What to do with a database that another version of the program made.
const OTHER_VERSION: &str = "the database was made by another version of hookstead; go back to that \
    version, or, to start with an empty database, move its folder away (.hookstead/postgres)";

/// A migrated database, and the server that runs for it.
pub(crate) struct Prepared {
    pub(crate) database: Database,
    /// `None` where the database was given.
    pub(crate) server: Option<Server>,
    /// What it is, in words, for the ready message.
    pub(crate) described: String,
}

/// Finds or starts PostgreSQL and brings its schema up to date.
pub(crate) async fn prepare(project: &Project) -> Result<Prepared, Error> {
    let prepared = match given_url() {
        Some(url) => Prepared {
            database: Database::new(url, SignIn::SetRole),
            server: None,
            described: "PostgreSQL of HOOKSTEAD_DATABASE_URL".to_owned(),
        },
        None => own(project).await?,
    };
    let mut connection = prepared.database.connect().await?;
    let migrated = hookstead_store::migrate(&mut connection).await;
    migrated.map_err(|source| Error::Store {
        doing: match source {
            StoreError::MigrationHistory(_) => OTHER_VERSION,
            _ => "cannot bring the database's schema up to date",
        },
        source,
    })?;
    Ok(prepared)
}

async fn own(project: &Project) -> Result<Prepared, Error> {
    let folder = project.folder().to_path_buf();
    // Finding, fetching and starting wait for other processes; signals are still heard meanwhile.
    let started = tokio::task::spawn_blocking(move || start(&folder)).await;
    let server = started
        .map_err(std::io::Error::other)
        .doing("cannot start PostgreSQL")??;
    let url = server.url(DATABASE);
    let made = async {
        if !Postgres::database_exists(&url).await? {
            Postgres::create_database(&url).await?;
        }
        Ok::<(), sqlx::Error>(())
    };
    made.await
        .map_err(StoreError::from)
        .doing("cannot make the database")?;
    let (major, minor) = server.binaries().version;
    let described = format!(
        "PostgreSQL {major}.{minor} on port {}, data in {}",
        server.port(),
        server.data_dir().display()
    );
    Ok(Prepared {
        database: Database::new(url, SignIn::SetRole),
        server: Some(server),
        described,
    })
}

fn start(folder: &std::path::Path) -> Result<Server, PostgresError> {
    let data_dir = project_data_dir(folder)?;
    if let Err(PostgresError::NotFound { .. }) = Binaries::find() {
        eprintln!("No PostgreSQL 15 or newer is on this machine: fetching it once into the cache.");
    }
    let binaries = Binaries::obtain_for(&data_dir)?;
    Server::start(Options::new(data_dir, binaries))
}
