//! Outbox rows become events and deliveries.

use hookstead_domain::EventId;
use sqlx::{Connection as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::operation;
use super::outbox_row::Expansion;
use crate::error::StoreError;
use crate::ingest::refuses_payload;
use crate::payload::PayloadError;

/// Most bytes of payloads that one call reads, so that the memory of a small function
/// suffices; a single larger row is read all the same. Rows have at most 6 MiB.
pub const MAX_EXPAND_BYTES: u32 = 8 * 1024 * 1024;

/// How long writing a batch may take. A hundred rows take some 20 ms; a single row
/// that takes longer than this, by a filter that explodes on its payload, is set aside
/// and must not use up the relay's minute first.
const WRITE_TIMEOUT: &str = "5s";

/// First wait of a row that was set aside, in seconds. Each further failure doubles it.
const FIRST_WAIT_S: f64 = 60.0;

/// Longest wait of such a row, in seconds: a cause that was mended is noticed within
/// this.
const LONGEST_WAIT_S: f64 = 3600.0;

/// SQLSTATE classes of objections to the data of a row: data, integrity, limits.
const CLASSES_OF_ROWS: [&str; 3] = ["22", "23", "54"];

/// What is written down where the server gave no code: "internal error".
const UNKNOWN_STATE: &str = "XX000";

/// SQLSTATE of a statement that took too long.
const TOOK_TOO_LONG: &str = "57014";

/// What one call of [`expand_outbox`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// Rows that became events.
    pub events: u32,
    /// Deliveries that these are owed.
    pub deliveries: u32,
    /// Rows whose key their source had used before: gone without an event.
    pub duplicates: u32,
    /// Rows that the database refuses and that are tried again later. To be logged.
    pub set_aside: u32,
}

impl Expanded {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.duplicates += other.duplicates;
        self.set_aside += other.set_aside;
    }

    /// Rows that were dealt with.
    #[must_use]
    pub const fn rows(&self) -> u32 {
        self.events + self.duplicates + self.set_aside
    }
}

/// Turns at most `limit` outbox rows, oldest first, into events and their deliveries,
/// which are due at once. One short transaction: an event is there whole, with its
/// deliveries and without its outbox row, or not at all.
///
/// The event is received now, as its id says, and occurred when its producer says.
/// What its body holds decides about the payload as in ingest.
///
/// A row that the database refuses holds up nothing: where a batch fails for a reason
/// that lies in a row, the rows are expanded one by one. One whose payload is refused
/// becomes an event without it. Anything else sets the row aside: it stays in the
/// outbox, says why in `failure_sqlstate`, and is tried again after a minute, then two,
/// up to an hour, until it passes.
///
/// # Errors
///
/// Those of the server and of the connection; nothing of what failed was written.
pub async fn expand_outbox(
    connection: &mut PgConnection,
    limit: u16,
) -> Result<Expanded, StoreError> {
    match expand_batch(connection, limit).await {
        Err(error) if lies_in_a_row(&error) => expand_one_by_one(connection, limit).await,
        outcome => outcome,
    }
}

/// [`expand_outbox`] as an operation.
#[derive(Clone, Copy, Debug)]
pub struct ExpandOutbox {
    /// Most rows.
    pub limit: u16,
}

operation!(ExpandOutbox => Expanded, |this, connection| expand_outbox(connection, this.limit));

async fn expand_batch(connection: &mut PgConnection, limit: u16) -> Result<Expanded, StoreError> {
    let mut transaction = connection.begin().await?;
    let outcome = take_and_write(&mut transaction, limit).await;
    settle(transaction, outcome).await
}

async fn take_and_write(connection: &mut PgConnection, limit: u16) -> Result<Expanded, StoreError> {
    let rows = sqlx::query_file!(
        "queries/expand_take.sql",
        i64::from(limit),
        i64::from(MAX_EXPAND_BYTES),
    )
    .fetch_all(&mut *connection)
    .await?;
    let expansions: Vec<Expansion> = rows
        .into_iter()
        .map(|row| Expansion::new(row.outbox_id, &row.content_type, &row.payload, row.now))
        .collect();
    write(connection, &expansions).await
}

async fn expand_one_by_one(
    connection: &mut PgConnection,
    limit: u16,
) -> Result<Expanded, StoreError> {
    let ids = sqlx::query_scalar!(
        "select outbox_id from hookstead.outbox
         where expand_at <= now() order by expand_at limit $1::bigint",
        i64::from(limit),
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut all = Expanded::default();
    for id in ids {
        let one = match expand_one(connection, id, true).await {
            Err(error) if refuses_payload(&error) => expand_one(connection, id, false).await,
            outcome => outcome,
        };
        all.add(match one {
            Err(error) if lies_in_a_row(&error) => set_aside(connection, id, &error).await?,
            outcome => outcome?,
        });
    }
    Ok(all)
}

/// Expands a row in a transaction of its own, with or without its payload. Nothing
/// happens where another relay holds it or has dealt with it.
async fn expand_one(
    connection: &mut PgConnection,
    outbox_id: Uuid,
    with_payload: bool,
) -> Result<Expanded, StoreError> {
    let mut transaction = connection.begin().await?;
    let outcome = lock_and_write(&mut transaction, outbox_id, with_payload).await;
    settle(transaction, outcome).await
}

async fn lock_and_write(
    connection: &mut PgConnection,
    outbox_id: Uuid,
    with_payload: bool,
) -> Result<Expanded, StoreError> {
    let row = sqlx::query!(
        r#"select content_type, payload, now() as "now!" from hookstead.outbox
           where outbox_id = $1 and expand_at <= now()
           for update skip locked"#,
        outbox_id,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else {
        return Ok(Expanded::default());
    };
    let expansion = Expansion::new(outbox_id, &row.content_type, &row.payload, row.now);
    let expansion = match with_payload {
        true => expansion,
        false => expansion.without_payload(),
    };
    write(connection, &[expansion]).await
}

/// Writes the events of rows that the caller has locked.
async fn write(
    connection: &mut PgConnection,
    expansions: &[Expansion],
) -> Result<Expanded, StoreError> {
    if expansions.is_empty() {
        return Ok(Expanded::default());
    }
    sqlx::query!(
        "select set_config('statement_timeout', $1, true)",
        WRITE_TIMEOUT
    )
    .fetch_one(&mut *connection)
    .await?;
    let column = |of: fn(&Expansion) -> Uuid| expansions.iter().map(of).collect::<Vec<_>>();
    let fits: Vec<bool> = expansions.iter().map(|row| row.body_fits).collect();
    let payloads: Vec<Option<&str>> = expansions
        .iter()
        .map(|row| row.payload.as_deref())
        .collect();
    let errors: Vec<Option<&str>> = expansions
        .iter()
        .map(|row| row.payload_error.map(PayloadError::code))
        .collect();
    let written = sqlx::query_file!(
        "queries/expand.sql",
        &column(|row| row.outbox_id),
        &column(|row| EventId::as_uuid(row.event_id)),
        &fits,
        &payloads as &[Option<&str>],
        &errors as &[Option<&str>],
    )
    .fetch_one(connection)
    .await?;
    let number = |rows: i64| u32::try_from(rows).unwrap_or_default();
    Ok(Expanded {
        events: number(written.events),
        deliveries: number(written.deliveries),
        duplicates: number(written.rows.saturating_sub(written.events)),
        set_aside: 0,
    })
}

/// Puts a row off, and says of it what the database objected to.
async fn set_aside(
    connection: &mut PgConnection,
    outbox_id: Uuid,
    error: &StoreError,
) -> Result<Expanded, StoreError> {
    let done = sqlx::query!(
        "update hookstead.outbox
         set failures = failures + 1, failure_sqlstate = $2,
             expand_at = now() + least($3::float8 * 2 ^ least(failures, 10), $4::float8) * interval '1 second'
         where outbox_id = $1 and expand_at <= now()",
        outbox_id,
        error.sqlstate().unwrap_or(UNKNOWN_STATE),
        FIRST_WAIT_S,
        LONGEST_WAIT_S,
    )
    .execute(connection)
    .await?;
    Ok(Expanded {
        set_aside: u32::try_from(done.rows_affected()).unwrap_or_default(),
        ..Expanded::default()
    })
}

/// Ends a transaction now and not with the connection's next use: until then it keeps
/// its rows locked.
async fn settle(
    transaction: Transaction<'_, Postgres>,
    outcome: Result<Expanded, StoreError>,
) -> Result<Expanded, StoreError> {
    match outcome {
        Ok(expanded) => {
            transaction.commit().await?;
            Ok(expanded)
        }
        Err(error) => {
            // The first error is the one to tell. A connection that cannot even roll
            // back says so by itself when it is used again.
            transaction.rollback().await.ok();
            Err(error)
        }
    }
}

/// Whether the database objects to what a row holds, so that another row may pass. A
/// missing partition is no such objection: every row of the day meets it.
fn lies_in_a_row(error: &StoreError) -> bool {
    let Some(state) = error.sqlstate() else {
        return false;
    };
    state == TOOK_TOO_LONG
        || CLASSES_OF_ROWS.contains(&state.get(..2).unwrap_or_default()) && !error.is_transient()
}
