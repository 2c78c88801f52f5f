//! `hookstead apply`: the manifest becomes the configuration in the database.

use hookstead_aws::keys::Sealer;
use hookstead_domain::RetryPolicy;
use hookstead_store::{
    Action, Change, Desired, DesiredSource, DesiredSubscription, ManifestError, NewSecret, Plan,
    Secretless, StoreError, Subject, apply_with_secrets, subscriptions_without_secret,
};
use serde_json::{Value, json};
use sqlx::postgres::PgConnection;

use crate::database::{Database, Role, given_url};
use crate::dev::secrets;
use crate::error::{Doing as _, Error, Exit};
use crate::keys::{self, Issued, Offer};
use crate::manifest::{
    Destination, Manifest, Problem, Problems, Retry, SecretRef, Source, Subscription,
};
use crate::output::{self, Table, bad, dim, good};
use crate::private;
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
    manifest.check_addresses(&private::allowed(&project)?)?;
    if given_url().is_some() {
        warn_of_development_secrets(&manifest);
    } else if !arguments.plan {
        // A source that is new to a running `dev` works at once.
        secrets::prepare(&project, &manifest)?;
    }
    let mut connection = database.connect_as(Role::Admin).await?;
    let done = if arguments.plan {
        let plan = check(&mut connection, &manifest).await?;
        Done {
            plan,
            ..Done::default()
        }
    } else {
        let sealer = keys::sealer(&project)?;
        apply(&mut connection, &manifest, sealer.as_ref()).await?
    };
    let without_secret = unsigned(&mut connection, &manifest).await?;
    if arguments.json {
        output::json(&json!({
            "applied": !arguments.plan, "changes": done.plan.changes, "secrets": done.issued,
            "without_secret": names(&without_secret),
        }))?;
    } else {
        print(&done, arguments.plan)?;
    }
    if !without_secret.is_empty() {
        say_without_secret(&without_secret, arguments.plan);
    }
    Ok(Exit::Yes)
}

/// What applying came to.
#[derive(Default)]
pub(crate) struct Done {
    plan: Plan,
    /// Signing secrets that were issued.
    pub(crate) issued: Vec<Issued>,
}

/// Writes the manifest to the database. With a key, subscriptions that post and have no
/// signing secret get one.
pub(crate) async fn apply(
    connection: &mut PgConnection,
    manifest: &Manifest,
    sealer: Option<&Sealer>,
) -> Result<Done, Error> {
    check(connection, manifest).await?;
    let offers = match sealer {
        Some(sealer) => {
            let wanted = unsigned(connection, manifest).await?;
            keys::offers(sealer, &wanted).await?
        }
        None => Vec::new(),
    };
    let sealed: Vec<NewSecret> = offers.iter().map(|offer| offer.sealed.clone()).collect();
    let applied = apply_with_secrets(connection, &desired(manifest), &sealed, &actor()).await;
    let applied = applied.doing("cannot apply the manifest")?;
    let issued = offers
        .into_iter()
        .filter(|offer| applied.secrets_issued.contains(&offer.sealed.name))
        .map(Offer::into_issued);
    Ok(Done {
        plan: applied.plan,
        issued: issued.collect(),
    })
}

/// The subscriptions that post and have no signing secret.
async fn unsigned(
    connection: &mut PgConnection,
    manifest: &Manifest,
) -> Result<Vec<Secretless>, Error> {
    let posting = manifest.subscriptions.iter().filter(|subscription| {
        subscription.enabled && matches!(subscription.destination, Destination::Http(_))
    });
    let names: Vec<String> = posting.map(|one| one.name.to_string()).collect();
    let without = subscriptions_without_secret(connection, &names).await;
    without.doing("cannot read the subscriptions")
}

fn names(subscriptions: &[Secretless]) -> Vec<&str> {
    subscriptions.iter().map(|one| one.name.as_str()).collect()
}

/// A subscription without a secret gets nothing: deliveries are always signed.
fn say_without_secret(without: &[Secretless], only_plan: bool) {
    let names = names(without).join(", ");
    if only_plan {
        eprintln!("Applying issues signing secrets for: {names}.");
    } else {
        eprintln!(
            "warning[no_key]: {names} have no signing secret and get no deliveries: {}",
            keys::no_key()
        );
    }
}

/// Who is written down as the one who applied it.
pub(crate) fn actor() -> String {
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
        .filter(|source| source.secret == Some(SecretRef::Dev))
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
        secret_ref: reference(source),
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

/// The reference as the receiver reads it; `None` for a source without an endpoint.
pub(crate) fn reference(source: &Source) -> Option<String> {
    Some(match source.secret.as_ref()? {
        SecretRef::Dev => Project::secret_reference(source.name.as_str()),
        SecretRef::Env(name) => format!("env:{name}"),
        SecretRef::File(path) => format!("file:{path}"),
    })
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

fn print(done: &Done, only_plan: bool) -> Result<(), Error> {
    let plan = &done.plan;
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
    if !done.issued.is_empty() {
        output::line(&format!("{}\n", keys::table(&done.issued).render()))?;
    }
    let nothing = plan.is_empty() && done.issued.is_empty();
    output::line(&match (nothing, only_plan) {
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
