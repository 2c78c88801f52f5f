//! `hookstead tail`: what happens, as it happens.

mod seen;

use std::time::Duration;

use hookstead_store::{Recent, StoreError, recent};
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::database::{Database, Role};
use crate::error::{Doing as _, Error, Exit};
use crate::output::{self, dim};
use crate::project::{Project, ProjectArguments};
use crate::signals::Signals;
use crate::since;
use seen::{Happened, Seen};

/// How often the database is asked: soon enough for a person who waits.
const EVERY: Duration = Duration::from_millis(500);

/// How far each look overlaps the last one. A row becomes visible with its commit, which
/// is later than the time in it by as long as its statement took and as clocks differ;
/// no statement of ours may take half as long.
const OVERLAP: Duration = Duration::from_secs(60);

/// How long the database may take over a look. Each is three small statements that take
/// milliseconds; a database that is busy for longer is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How far back a first look may go: a day of history is a list and not a tail.
const MAX_SINCE: Duration = Duration::from_secs(24 * 3600);

/// Follow what happens: events, attempts, deliveries that end
///
/// Each is printed once, as soon as it is visible. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Begin with what happened since: 90s, 15m, 2h, or a time; at most a day
    #[arg(long, value_name = "TIME", value_parser = since::parse)]
    since: Option<OffsetDateTime>,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print a JSON object for each
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let mut signals = Signals::listen()?;
    let project = Project::of(&arguments.project)?;
    let database = Database::in_use(&project)?;
    let connection = database.connect_as(Role::Admin).await?;
    let follower = Follower {
        database,
        connection: Some(connection),
        seen: Seen::default(),
        looked_at: Instant::now(),
    };
    tokio::select! {
        followed = follower.follow(&arguments) => followed.map(|()| Exit::Yes),
        () = signals.first() => Ok(Exit::Yes),
    }
}

struct Follower {
    database: Database,
    connection: Option<PgConnection>,
    seen: Seen,
    /// When a look last succeeded, on our clock.
    looked_at: Instant,
}

impl Follower {
    async fn follow(mut self, arguments: &Arguments) -> Result<(), Error> {
        let first = self.begin(arguments.since).await?;
        print(first, arguments.json)?;
        // After the first look, so that nothing is missed by whoever waits for this line.
        eprintln!("{}", dim("Following what happens; Ctrl-C ends it."));
        let mut look = tokio::time::interval(EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_away = false;
        loop {
            look.tick().await;
            match self.look().await {
                Ok(happened) => {
                    print(happened, arguments.json)?;
                    is_away = false;
                }
                Err(error) if error.is_transient() => {
                    self.connection = None;
                    if !is_away {
                        eprintln!("warning[database_unreachable]: {error}; trying again");
                    }
                    is_away = true;
                }
                Err(error) => return Err(error).doing("cannot read what happened"),
            }
        }
    }

    /// The first look: what was there before counts as seen.
    async fn begin(&mut self, since: Option<OffsetDateTime>) -> Result<Vec<Happened>, Error> {
        let age = since.map(|since| OffsetDateTime::now_utc() - since);
        let age = age.map_or(Duration::ZERO, |age| age.try_into().unwrap_or_default());
        if age > MAX_SINCE {
            let message =
                "--since reaches back a day at most; `hookstead events` lists what is older";
            return Err(Error::usage("since_too_old", message));
        }
        let read = self
            .read(age + OVERLAP)
            .await
            .doing("cannot read what happened")?;
        let from = since.map(|_| read.read_at - age);
        self.looked_at = Instant::now();
        let there = self.seen.fresh(read, self.looked_at);
        // Without a time to begin at, everything so far is the past.
        let from = |one: &Happened| from.is_some_and(|from| one.at() >= from);
        Ok(there.into_iter().filter(from).collect())
    }

    async fn look(&mut self) -> Result<Vec<Happened>, StoreError> {
        // While the database was away, more than the overlap may have gone by.
        let now = Instant::now();
        let back = now.duration_since(self.looked_at) + OVERLAP;
        // A connection whose other side is gone may be silent for ever.
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.read(back)).await;
        let read = answer.unwrap_or(Err(StoreError::Silent))?;
        self.looked_at = now;
        let fresh = self.seen.fresh(read, now);
        // What is older than two overlaps cannot come up again.
        self.seen.forget(now, 2 * OVERLAP);
        Ok(fresh)
    }

    async fn read(&mut self, back: Duration) -> Result<Recent, StoreError> {
        let connection = match self.connection.as_mut() {
            Some(connection) => connection,
            None => {
                let opened = self.database.open_as(Role::Admin).await?;
                self.connection.insert(opened)
            }
        };
        recent(connection, back).await
    }
}

fn print(happened: Vec<Happened>, as_json: bool) -> Result<(), Error> {
    for one in happened {
        if as_json {
            let text = serde_json::to_string(&one).map_err(std::io::Error::other);
            output::line(&text.doing("cannot write the answer as JSON")?)?;
        } else {
            output::line(&one.line())?;
        }
    }
    Ok(())
}
