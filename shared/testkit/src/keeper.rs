//! The one thread per test process that makes and drops databases.
//!
//! It keeps a connection open for as long as the process lives, with an advisory lock on a
//! number of the process's own. The number is part of each database's name, so what a
//! crashed run left behind is recognised by its lock being free, and is swept away.

use std::sync::OnceLock;
use std::sync::mpsc;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::sync::oneshot;
use url::Url;

use crate::template;

/// First half of the advisory locks that mark living test processes.
const PROCESS_LOCKS: i32 = 0x686b_7401;

/// What the databases of tests are called: this, the process's number in hex, a counter.
const PREFIX: &str = "hookstead_test_";

enum Task {
    Create(oneshot::Sender<Result<String, String>>),
    Drop(String, mpsc::Sender<()>),
}

/// The way to that thread.
pub(crate) struct Keeper {
    tasks: mpsc::Sender<Task>,
}

impl Keeper {
    /// The process's keeper, started at the first call. A process has one test server.
    pub(crate) fn of(server: &Url) -> &'static Self {
        static KEEPER: OnceLock<Keeper> = OnceLock::new();
        KEEPER.get_or_init(|| {
            let (tasks, queue) = mpsc::channel();
            let server = server.clone();
            std::thread::Builder::new()
                .name("test databases".to_owned())
                .spawn(move || run(&server, &queue))
                .expect("the system gives one more thread");
            Self { tasks }
        })
    }

    pub(crate) async fn create(&self) -> Result<String, String> {
        let (reply, answer) = oneshot::channel();
        let sent = self.tasks.send(Task::Create(reply));
        let ended = "the thread that makes databases has ended";
        sent.map_err(|_| ended.to_owned())?;
        answer.await.map_err(|_| ended.to_owned())?
    }

    pub(crate) fn drop_database(&self, name: &str) {
        let (reply, answer) = mpsc::channel();
        if self.tasks.send(Task::Drop(name.to_owned(), reply)).is_ok() {
            // An error means the thread has ended; the next run sweeps the database away.
            answer.recv().ok();
        }
    }
}

fn run(server: &Url, queue: &mpsc::Receiver<Task>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system gives what a runtime needs");
    let mut working = runtime
        .block_on(Workshop::open(server))
        .map_err(|error| error.to_string());
    while let Ok(task) = queue.recv() {
        match task {
            Task::Create(reply) => {
                let made = match &mut working {
                    Ok(workshop) => runtime
                        .block_on(workshop.create())
                        .map_err(|error| error.to_string()),
                    Err(problem) => Err(problem.clone()),
                };
                // A test that no longer waits has failed otherwise; its database is swept later.
                reply.send(made).ok();
            }
            Task::Drop(name, reply) => {
                if let Ok(workshop) = &mut working {
                    runtime.block_on(workshop.drop_database(&name)).ok();
                }
                reply.send(()).ok();
            }
        }
    }
}

struct Workshop {
    connection: PgConnection,
    template: String,
    process: u32,
    made: u32,
}

impl Workshop {
    async fn open(server: &Url) -> Result<Self, template::Problem> {
        let mut connection = PgConnection::connect(server.as_str()).await?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).expect("the system gives random bytes");
        let process = u32::from_be_bytes(random);
        sqlx::query("select pg_advisory_lock($1, $2)")
            .bind(PROCESS_LOCKS)
            .bind(process.cast_signed())
            .execute(&mut connection)
            .await?;
        sweep(&mut connection).await?;
        let template = template::ensure(&mut connection, server).await?;
        Ok(Self {
            connection,
            template,
            process,
            made: 0,
        })
    }

    async fn create(&mut self) -> Result<String, sqlx::Error> {
        self.made += 1;
        let name = format!("{PREFIX}{:08x}_{}", self.process, self.made);
        let sql = format!("create database {name} template {}", self.template);
        execute(&mut self.connection, sql).await?;
        Ok(name)
    }

    async fn drop_database(&mut self, name: &str) -> Result<(), sqlx::Error> {
        drop_database(&mut self.connection, name).await
    }
}

/// Drops the databases of processes that are gone.
async fn sweep(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let names: Vec<String> =
        sqlx::query_scalar("select datname::text from pg_database where starts_with(datname, $1)")
            .bind(PREFIX)
            .fetch_all(&mut *connection)
            .await?;
    let living: Vec<i64> = sqlx::query_scalar(
        "select objid::bigint from pg_locks where locktype = 'advisory' and classid::bigint = $1",
    )
    .bind(i64::from(PROCESS_LOCKS))
    .fetch_all(&mut *connection)
    .await?;
    for name in names {
        let process = process_of(&name);
        if process.is_none_or(|process| !living.contains(&i64::from(process))) {
            // Another process may sweep the same one at the same moment.
            drop_database(connection, &name).await.ok();
        }
    }
    Ok(())
}

fn process_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.get(..8)?;
    u32::from_str_radix(digits, 16).ok()
}

pub(crate) async fn drop_database(
    connection: &mut PgConnection,
    name: &str,
) -> Result<(), sqlx::Error> {
    let sql = format!("drop database if exists {name} with (force)");
    execute(connection, sql).await
}

/// Runs a statement that takes no parameters: names of databases cannot be parameters.
/// Every name in it was made by this crate.
pub(crate) async fn execute(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await?;
    Ok(())
}
