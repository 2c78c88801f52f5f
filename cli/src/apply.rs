//! `hookstead apply`: the manifest becomes the configuration in the database.

use hookstead_domain::RetryPolicy;
use hookstead_store::{
    Action, Change, Desired, DesiredSource, DesiredSubscription, ManifestError, Plan, StoreError,
    Subject,
};
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;

use crate::database::{Database, Role, given_url};
use crate::dev::secrets;
use crate::error::{Doing as _, Error, Exit};
use crate::manifest::{Manifest, Problem, Problems, Retry, SecretRef, Source, Subscription};
use crate::output::{self, Table, bad, dim, good};
use crate::project::{Project, ProjectArguments};

/// Write the manifest's sources and subscriptions to the database
///
/// Makes the sources and subscriptions in the database what the manifest says,
/// in one transaction. What the manifest no longer names is disabled, never
/// deleted.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Say what would change, and change nothing
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Print the changes as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<Exit, Error> {
    let project = Project::of(&arguments.project)?;
    let manifest = Manifest::read(&arguments.project.manifest)?;
    let database = Database::in_use(&project)?;
    if given_url().is_some() {
        warn_of_development_secrets(&manifest);
    } else if !arguments.plan {
        // A source that is new to a running `dev` works at once.
        secrets::prepare(&project, &manifest)?;
    }
    let mut connection = database.connect_as(Role::Admin).await?;
    let plan = if arguments.plan {
        check(&mut connection, &manifest).await?
    } else {
        apply(&mut connection, &manifest).await?
    };
    if arguments.json {
        output::json(&json!({ "applied": !arguments.plan, "changes": plan.changes }))?;
    } else {
        print(&plan, arguments.plan)?;
    }
    Ok(Exit::Yes)
}

/// Writes the manifest to the database.
pub(crate) async fn apply(
    connection: &mut PgConnection,
    manifest: &Manifest,
) -> Result<Plan, Error> {
    check(connection, manifest).await?;
    let applied = hookstead_store::apply(connection, &desired(manifest), &actor()).await;
    applied.doing("cannot apply the manifest")
}

/// Who is written down as the one who applied it.
fn actor() -> String {
    /// The audit log's own limit.
    const MAX_CHARS: usize = 256;
    let user = std::env::var("USER").unwrap_or_default();
    let user: String = user
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect();
    if user.trim().is_empty() {
        "unknown".to_owned()
    } else {
        user
    }
}

/// A deployed receiver has no access to what `dev` keeps on this machine.
fn warn_of_development_secrets(manifest: &Manifest) {
    let sources = manifest.sources.iter();
    let local: Vec<&str> = sources
        .filter(|source| source.secret == SecretRef::Dev)
        .map(|source| source.name.as_str())
        .collect();
    if !local.is_empty() {
        let names = local.join(", ");
        eprintln!(
            "warning[development_secret]: the secrets of {names} are on this machine alone; a receiver elsewhere cannot read them"
        );
    }
}

/// What applying would do. The database finds one problem at a time; what it
/// complains about is put aside and it is asked again, so that all are reported.
async fn check(connection: &mut PgConnection, manifest: &Manifest) -> Result<Plan, Error> {
    let mut desired = desired(manifest);
    let mut problems = Problems::new(&manifest.file);
    loop {
        match hookstead_store::plan(connection, &desired).await {
            Ok(plan) => return Ok(problems.into_result(plan)?),
            Err(StoreError::Manifest(error)) => {
                let before = desired.sources.len() + desired.subscriptions.len();
                put_aside(&mut desired, &error);
                problems.add(problem(manifest, &error));
                if desired.sources.len() + desired.subscriptions.len() == before {
                    return Ok(problems.into_result(Plan::default())?);
                }
            }
            Err(error) => return Err(error).doing("cannot compare the manifest with the database"),
        }
    }
}

fn put_aside(desired: &mut Desired, error: &ManifestError) {
    match error.subject {
        Subject::Source => desired
            .sources
            .retain(|source| source.name.as_str() != error.name),
        Subject::Subscription => {
            desired
                .subscriptions
                .retain(|subscription| subscription.name.as_str() != error.name);
        }
    }
}

fn problem(manifest: &Manifest, error: &ManifestError) -> Problem {
    let (word, line) = match error.subject {
        Subject::Source => {
            let mut all = manifest.sources.iter();
            (
                "source",
                all.find(|s| s.name.as_str() == error.name).map(|s| s.line),
            )
        }
        Subject::Subscription => {
            let mut all = manifest.subscriptions.iter();
            (
                "subscription",
                all.find(|s| s.name.as_str() == error.name).map(|s| s.line),
            )
        }
    };
    let field = match error.code {
        "invalid_filter" => "payload_filter",
        "invalid_retry_policy" => "retry",
        "unknown_source" => "source",
        "duplicate_name" => "name",
        _ => "",
    };
    let message = error.to_string();
    let lead = format!("{word} '{}': ", error.name);
    Problem {
        line,
        table: format!("{word} \"{}\"", error.name),
        field: field.to_owned(),
        code: error.code,
        message: message.strip_prefix(&lead).unwrap_or(&message).to_owned(),
    }
}

fn desired(manifest: &Manifest) -> Desired {
    // What is switched off in the manifest is to the database as if it were not there.
    let enabled = manifest
        .subscriptions
        .iter()
        .filter(|subscription| subscription.enabled);
    Desired {
        sources: manifest.sources.iter().map(desired_source).collect(),
        subscriptions: enabled.map(desired_subscription).collect(),
    }
}

fn desired_source(source: &Source) -> DesiredSource {
    let scheme = source.scheme.as_ref();
    DesiredSource {
        name: source.name.clone(),
        kind: source.kind.clone(),
        // A scheme is plain data, so it always has a JSON form.
        scheme: scheme.and_then(|scheme| serde_json::to_value(scheme).ok()),
        secret_ref: Some(reference(source)),
        public_url: source.public_url.clone(),
        tolerance_s: source.tolerance_s,
        allowed_event_types: source.allowed_event_types.clone(),
        dedupe_rule: source.dedupe.clone(),
        tenant: source.tenant.clone(),
        schema_version: source.schema_version.clone(),
        retired_schema_versions: Vec::new(),
        report_event_type: source.report_event_type,
    }
}

/// The reference as the receiver reads it.
pub(crate) fn reference(source: &Source) -> String {
    match &source.secret {
        SecretRef::Dev => Project::secret_reference(source.name.as_str()),
        SecretRef::Env(name) => format!("env:{name}"),
        SecretRef::File(path) => format!("file:{path}"),
    }
}

fn desired_subscription(subscription: &Subscription) -> DesiredSubscription {
    DesiredSubscription {
        name: subscription.name.clone(),
        source: subscription.source.clone(),
        tenant: subscription.tenant.clone(),
        event_types: subscription.event_types.clone(),
        payload_filter: subscription.payload_filter.clone(),
        destination: serde_json::to_value(&subscription.destination).unwrap_or_default(),
        retry_policy: retry_policy(&subscription.retry),
        schema_version: subscription.schema_version.clone(),
        rate_limit_per_s: subscription.rate_limit_per_s,
    }
}

/// The whole policy where something is overridden; `None` keeps the default one.
fn retry_policy(retry: &Retry) -> Option<Value> {
    if *retry == Retry::default() {
        return None;
    }
    let mut policy = serde_json::to_value(RetryPolicy::default()).unwrap_or_default();
    let overrides = [
        (
            "schedule_s",
            retry.schedule_s.as_ref().map(|waits| json!(waits)),
        ),
        ("jitter", retry.jitter.map(|share| json!(share))),
        ("timeout_ms", retry.timeout_ms.map(|ms| json!(ms))),
        ("max_age_s", retry.max_age_s.map(|age| json!(age))),
        (
            "give_up_after_identical",
            retry.give_up_after_identical.map(|count| json!(count)),
        ),
    ];
    for (field, value) in overrides {
        if let Some(value) = value {
            policy[field] = value;
        }
    }
    Some(policy)
}

fn print(plan: &Plan, only_plan: bool) -> Result<(), Error> {
    let mut table = Table::new(["CHANGE", "WHAT", "NAME", "FIELDS"]);
    for change in &plan.changes {
        let (word, fields) = describe(change);
        let what = match change.subject {
            Subject::Source => "source",
            Subject::Subscription => "subscription",
        };
        table.row([word, what, &change.name, &fields]);
    }
    if !plan.changes.is_empty() {
        output::line(&table.render())?;
    }
    output::line(&match (plan.is_empty(), only_plan) {
        (true, _) => dim("Nothing changes: the database is as the manifest says."),
        (false, true) => bad("This is a plan; nothing was changed. Without --plan it is applied."),
        (false, false) => good("Applied."),
    })
}

fn describe(change: &Change) -> (&'static str, String) {
    match &change.action {
        Action::Create => ("create", String::new()),
        Action::Update { fields } => ("update", fields.join(", ")),
        Action::Enable { fields } => ("enable", fields.join(", ")),
        Action::Disable => ("disable", String::new()),
        Action::StaysDisabled { reason, .. } => ("stays disabled", format!("reason: {reason}")),
        Action::Unchanged => ("unchanged", String::new()),
    }
}
