//! A fresh, migrated database per test.

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use url::Url;

use crate::keeper::Keeper;

/// The environment variable with the superuser's URL of a running test server.
pub const URL_VARIABLE: &str = "HOOKSTEAD_TEST_DATABASE_URL";

/// How many connections [`TestDatabase::pool`] opens at most: enough for a race between
/// several workers, few enough that parallel tests stay below the server's limit.
const POOL_CONNECTIONS: u32 = 8;

/// A database of the caller's own, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    name: String,
    server: Url,
}

/// Makes a database with the whole schema in it, by copying a template that is migrated
/// once per server and set of migrations.
///
/// # Panics
/// Where `HOOKSTEAD_TEST_DATABASE_URL` is not set, or the server cannot be used.
pub async fn database() -> TestDatabase {
    let server = server_url();
    match Keeper::of(&server).create().await {
        Ok(name) => TestDatabase { name, server },
        Err(problem) => panic!("no test database could be made: {problem}"),
    }
}

fn server_url() -> Url {
    let Some(text) = std::env::var(URL_VARIABLE)
        .ok()
        .filter(|url| !url.is_empty())
    else {
        panic!(
            "{URL_VARIABLE} is not set. Run all tests with `cargo xtask test`, or start a server \
             with `cargo xtask postgres` and set the variable to the URL it prints"
        );
    };
    match text.parse() {
        Ok(url) => url,
        Err(error) => panic!("{URL_VARIABLE} is not a URL: {error}"),
    }
}

impl TestDatabase {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL for the superuser.
    #[must_use]
    pub fn url(&self) -> String {
        with_database(&self.server, &self.name).into()
    }

    /// Its URL for one of the roles in [`crate::role`].
    #[must_use]
    pub fn url_as(&self, role: &str) -> String {
        let mut url = with_database(&self.server, &self.name);
        let set = url.set_username(role).and_then(|()| url.set_password(None));
        set.expect("a server's URL takes a user");
        url.into()
    }

    /// A connection of the superuser.
    ///
    /// # Panics
    /// Where the server refuses it.
    pub async fn connect(&self) -> PgConnection {
        connect(&self.url()).await
    }

    /// A connection of one of the roles in [`crate::role`].
    ///
    /// # Panics
    /// Where the server refuses it.
    pub async fn connect_as(&self, role: &str) -> PgConnection {
        connect(&self.url_as(role)).await
    }

    /// A pool of the superuser's connections, opened as they are needed.
    ///
    /// # Panics
    /// Where the URL cannot be used.
    #[must_use]
    pub fn pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(POOL_CONNECTIONS)
            .connect_lazy(&self.url())
            .expect("the test server's URL was used before")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // Waits, so that the database is gone when the test ends; another thread does the work.
        Keeper::of(&self.server).drop_database(&self.name);
    }
}

/// Without a log of its statements: tests write what must not be found in logs.
async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().expect("a URL that was just made");
    match PgConnection::connect_with(&options.disable_statement_logging()).await {
        Ok(connection) => connection,
        Err(error) => panic!("the test server refused a connection: {error}"),
    }
}

/// The URL of another database on the same server.
pub(crate) fn with_database(server: &Url, name: &str) -> Url {
    let mut url = server.clone();
    url.set_path(name);
    url
}
