//! Who may do what, tried for real.
//!
//! The table in docs/data-model.md is the rule. Everything it does not allow is
//! attempted as that role and must be refused, everything it allows must not be;
//! what the catalog has and the table does not name fails the test.

use std::collections::{BTreeMap, BTreeSet};

use hookstead_testkit::{TestDatabase, role};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::rights::{Rights, documented};
use crate::support::run;

/// Rights that no role but the owner has on anything.
const NEVER: [&str; 3] = ["truncate", "references", "trigger"];

struct Relation {
    name: String,
    is_view: bool,
    columns: Vec<String>,
}

async fn relations(admin: &mut PgConnection) -> Vec<Relation> {
    let rows: Vec<(String, bool, Vec<String>)> = sqlx::query_as(
        "select c.relname::text, c.relkind = 'v',
                array_agg(a.attname::text order by a.attnum)
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         where c.relnamespace = 'hookstead'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
           and not c.relispartition
         group by 1, 2 order by 1",
    )
    .fetch_all(admin)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(name, is_view, columns)| Relation {
            name,
            is_view,
            columns,
        })
        .collect()
}

/// Name and a call with a value for each argument. No nulls: a strict function of
/// null is null without anyone being asked.
async fn functions(admin: &mut PgConnection) -> Vec<(String, String)> {
    sqlx::query_as(
        "select p.proname::text || '()',
                format('select hookstead.%I(%s)', p.proname,
                    coalesce(string_agg(v.literal || '::' || t.type::regtype, ', ' order by t.n), ''))
         from pg_proc p
         left join unnest(p.proargtypes) with ordinality t (type, n) on true
         left join (values
             ('uuid'::regtype, '''00000000-0000-7000-8000-000000000000'''),
             ('date', '''2026-01-01'''), ('integer', '1'), ('text[]', '''{}'''),
             ('jsonb', '''{}'''), ('jsonpath', '''$'''), ('text', '''a'''), ('bytea', '''a'''),
             ('timestamptz', '''2026-01-01'''), ('uuid[]', '''{}'''), ('integer[]', '''{}''')
         ) v (type, literal) on v.type = t.type::regtype
         where p.pronamespace = 'hookstead'::regnamespace
         group by p.oid, p.proname order by 1",
    )
    .fetch_all(admin)
    .await
    .unwrap()
}

/// Whether the server lets this role do it. Any other objection means yes: rights
/// are looked at first.
async fn may(connection: &mut PgConnection, sql: &str) -> bool {
    match sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
    {
        Ok(_) => true,
        Err(sqlx::Error::Database(error)) => match error.code().unwrap().as_ref() {
            "42501" => false,
            // A statement that was never understood proves nothing.
            code if code.starts_with("42") => panic!("{sql}: {error}"),
            _ => true,
        },
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// One thing to try.
struct Attempt {
    sql: String,
    allowed: bool,
}

fn attempt(allowed: bool, sql: String) -> Attempt {
    Attempt { sql, allowed }
}

/// Reading, tried column by column.
fn reads(relation: &Relation, rights: &Rights) -> Vec<Attempt> {
    let name = &relation.name;
    let may = |column: &String| rights.allow_on("select", column);
    let all = relation.columns.iter().all(may);
    let mut attempts = vec![attempt(
        all,
        format!("select * from hookstead.{name} limit 0"),
    )];
    for column in &relation.columns {
        let sql = format!("select {column} from hookstead.{name} limit 0");
        attempts.push(attempt(may(column), sql));
    }
    attempts
}

/// Writing and changing a table, tried column by column where columns can differ.
fn writes(relation: &Relation, rights: &Rights) -> Vec<Attempt> {
    let name = &relation.name;
    for verb in NEVER {
        assert!(!rights.allow(verb), "{verb} is nobody's");
    }
    let insert = format!("insert into hookstead.{name} default values");
    let delete = format!("delete from hookstead.{name} where false");
    let mut attempts = vec![
        attempt(rights.allow("insert"), insert),
        attempt(rights.allow("delete"), delete),
    ];
    for column in &relation.columns {
        let sql = format!("update hookstead.{name} set {column} = default where false");
        attempts.push(attempt(rights.allow_on("update", column), sql));
    }
    let trigger = format!(
        "create trigger t before insert on hookstead.{name} for each row
         execute function suppress_redundant_updates_trigger()"
    );
    for sql in [
        format!("truncate hookstead.{name}"),
        trigger,
        format!("create table scratch.t (c uuid references hookstead.{name})"),
        format!("alter table hookstead.{name} add column injected text"),
        format!("drop table hookstead.{name}"),
    ] {
        attempts.push(attempt(false, sql));
    }
    attempts
}

/// Everything tried on one relation as one role; returns what came out wrong.
async fn try_relation(
    connection: &mut PgConnection,
    relation: &Relation,
    rights: &Rights,
) -> Vec<String> {
    let mut attempts = reads(relation, rights);
    let mut wrong = Vec::new();
    if relation.is_view {
        // That a view cannot be written is said before rights are looked at.
        let granted: bool = sqlx::query_scalar(
            "select has_any_column_privilege($1, 'insert, update, references')
                 or has_table_privilege($1, 'delete, truncate, trigger')",
        )
        .bind(format!("hookstead.{}", relation.name))
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        if granted {
            wrong.push(format!("more than select on {}", relation.name));
        }
    } else {
        attempts.extend(writes(relation, rights));
    }
    for Attempt { sql, allowed } in attempts {
        if may(connection, &sql).await != allowed {
            wrong.push(format!("allowed should be {allowed}: {sql}"));
        }
    }
    wrong
}

async fn database() -> (TestDatabase, PgConnection) {
    let database = hookstead_testkit::database().await;
    let mut admin = database.connect().await;
    // A place where every role may create, so that a refusal to refer to one of our
    // tables is about that table.
    run(
        &mut admin,
        "create schema scratch; grant usage, create on schema scratch to public",
    )
    .await;
    (database, admin)
}

fn users() -> impl Iterator<Item = &'static str> {
    role::ALL.into_iter().filter(|name| *name != role::OWNER)
}

#[tokio::test]
async fn every_right_that_is_not_documented_is_refused_and_every_documented_one_works() {
    let (database, mut admin) = database().await;
    let documented = documented();
    let relations = relations(&mut admin).await;
    let functions = functions(&mut admin).await;
    let objects: BTreeSet<String> = relations
        .iter()
        .map(|relation| relation.name.clone())
        .chain(functions.iter().map(|(name, _)| name.clone()))
        .collect();
    let named: BTreeSet<String> = documented.keys().cloned().collect();
    assert_eq!(
        objects, named,
        "docs/data-model.md names every object and no other"
    );

    let mut wrong = Vec::new();
    for role in users() {
        let mut connection = database.connect_as(role).await;
        run(&mut connection, "set default_transaction_read_only = off").await;
        for relation in &relations {
            let rights = documented[&relation.name]
                .get(role)
                .cloned()
                .unwrap_or_default();
            let found = try_relation(&mut connection, relation, &rights).await;
            wrong.extend(found.into_iter().map(|what| format!("{role}: {what}")));
        }
        for (name, call) in &functions {
            let should = documented[name]
                .get(role)
                .is_some_and(|rights| rights.allow("execute"));
            if may(&mut connection, call).await != should {
                wrong.push(format!("{role} execute {name}: should be {should}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn no_column_is_documented_that_does_not_exist() {
    let (_database, mut admin) = database().await;
    let columns: BTreeMap<String, Vec<String>> = relations(&mut admin)
        .await
        .into_iter()
        .map(|relation| (relation.name, relation.columns))
        .collect();
    for (object, roles) in documented() {
        for rights in roles.values() {
            for column in rights.columns.values().flatten() {
                assert!(
                    columns[&object].contains(column),
                    "{object} has no {column}"
                );
            }
        }
    }
}

#[tokio::test]
async fn nobody_reaches_a_partition_past_its_parent() {
    let (database, mut admin) = database().await;
    let partitions: Vec<String> = sqlx::query_scalar(
        "select min(c.relname::text) from pg_class c join pg_inherits i on i.inhrelid = c.oid
         where c.relkind = 'r' and c.relnamespace = 'hookstead'::regnamespace
         group by i.inhparent",
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(partitions.len(), 3);
    for role in users() {
        let mut connection = database.connect_as(role).await;
        run(&mut connection, "set default_transaction_read_only = off").await;
        for partition in &partitions {
            for sql in [
                format!("select 1 from hookstead.{partition}"),
                format!("insert into hookstead.{partition} default values"),
                format!("delete from hookstead.{partition}"),
                format!("truncate hookstead.{partition}"),
                format!("drop table hookstead.{partition}"),
            ] {
                assert!(!may(&mut connection, &sql).await, "{role}: {sql}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_but_the_owner_creates_anything_in_the_schema() {
    let (database, _admin) = database().await;
    for role in users() {
        let mut connection = database.connect_as(role).await;
        run(&mut connection, "set default_transaction_read_only = off").await;
        for sql in [
            "create table hookstead.injected (a int)",
            "create function hookstead.injected() returns int language sql as 'select 1'",
            "create view hookstead.injected as select 1",
            "create role hookstead_injected",
            "set role hookstead_owner",
            "alter role hookstead_receiver superuser",
        ] {
            assert!(!may(&mut connection, sql).await, "{role}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_role_that_was_given_nothing_has_nothing() {
    let (database, mut admin) = database().await;
    let stranger = format!("stranger_of_{}", database.name());
    run(&mut admin, &format!("create role {stranger}")).await;
    run(&mut admin, &format!("set role {stranger}")).await;
    let documented = documented();
    for object in documented.keys() {
        let sql = match object.strip_suffix("()") {
            Some(_) => continue,
            None => format!("select 1 from hookstead.{object}"),
        };
        assert!(!may(&mut admin, &sql).await, "{sql}");
    }
    run(&mut admin, "reset role").await;
    let of_public: i64 = sqlx::query_scalar(
        "select count(*) from (
             select (aclexplode(coalesce(proacl, acldefault('f', proowner)))).grantee from pg_proc
             where pronamespace = 'hookstead'::regnamespace
             union all
             select (aclexplode(relacl)).grantee from pg_class
             where relnamespace = 'hookstead'::regnamespace
             union all
             select (aclexplode(nspacl)).grantee from pg_namespace where nspname = 'hookstead'
         ) grants where grantee = 0",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    run(&mut admin, &format!("drop role {stranger}")).await;
    assert_eq!(of_public, 0, "PUBLIC has nothing");
}
