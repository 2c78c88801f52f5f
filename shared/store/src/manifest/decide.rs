//! From what is and what should be to what changes.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;

use super::{
    Action, Change, Desired, ManifestError, Plan, REMOVED, Subject, sources, subscriptions,
};
use crate::error::StoreError;

/// A plan, and lookups into it.
pub(super) struct Decided {
    pub(super) plan: Plan,
}

impl Decided {
    fn action(&self, subject: Subject, name: &str) -> Option<&Action> {
        let mut changes = self.plan.changes.iter();
        let found = changes.find(|change| change.subject == subject && change.name == name)?;
        Some(&found.action)
    }

    /// Whether the row is written.
    pub(super) fn writes(&self, subject: Subject, name: &str) -> bool {
        match self.action(subject, name) {
            Some(Action::Create | Action::Update { .. } | Action::Enable { .. }) => true,
            Some(Action::StaysDisabled { fields, .. }) => !fields.is_empty(),
            _ => false,
        }
    }

    /// Whether the subscription takes part after the row is written.
    pub(super) fn enables(&self, name: &str) -> bool {
        !matches!(
            self.action(Subject::Subscription, name),
            Some(Action::StaysDisabled { .. })
        )
    }
}

/// What stands in the database under one name, compared with what should.
pub(super) struct Current {
    /// The fields that differ; `None` where the manifest does not name it.
    pub(super) differs: Option<Vec<&'static str>>,
    pub(super) disabled: bool,
    pub(super) disabled_reason: Option<String>,
}

pub(super) async fn decide(
    connection: &mut PgConnection,
    desired: &Desired,
) -> Result<Decided, StoreError> {
    check_names(desired)?;
    for subscription in &desired.subscriptions {
        subscriptions::check(connection, subscription).await?;
    }
    let mut plan = Plan::default();
    let names = desired.sources.iter().map(|source| source.name.to_string());
    let current = sources::compare(connection, &desired.sources).await?;
    plan.changes
        .extend(changes(Subject::Source, names, &current));
    let names = desired
        .subscriptions
        .iter()
        .map(|subscription| subscription.name.to_string());
    let current = subscriptions::compare(connection, &desired.subscriptions).await?;
    plan.changes
        .extend(changes(Subject::Subscription, names, &current));
    Ok(Decided { plan })
}

fn changes(
    subject: Subject,
    desired: impl Iterator<Item = String>,
    current: &BTreeMap<String, Current>,
) -> Vec<Change> {
    let new = desired
        .filter(|name| !current.contains_key(name))
        .map(|name| (name, Action::Create));
    let known = current
        .iter()
        .filter_map(|(name, row)| action(row).map(|action| (name.clone(), action)));
    let by_name: BTreeMap<String, Action> = new.chain(known).collect();
    by_name
        .into_iter()
        .map(|(name, action)| Change {
            subject,
            name,
            action,
        })
        .collect()
}

/// `None` where there is nothing to say: not wanted and already disabled.
fn action(row: &Current) -> Option<Action> {
    let Some(fields) = row.differs.clone() else {
        return (!row.disabled).then_some(Action::Disable);
    };
    Some(match (&row.disabled_reason, row.disabled) {
        (Some(reason), true) if reason != REMOVED => Action::StaysDisabled {
            reason: reason.clone(),
            fields,
        },
        (_, true) => Action::Enable { fields },
        (_, false) if fields.is_empty() => Action::Unchanged,
        (_, false) => Action::Update { fields },
    })
}

fn check_names(desired: &Desired) -> Result<(), ManifestError> {
    let refuse = |code, subject, name: &str| {
        Err(ManifestError {
            code,
            subject,
            name: name.to_owned(),
            constraint: None,
        })
    };
    let mut sources = BTreeSet::new();
    for source in &desired.sources {
        if !sources.insert(source.name.as_str()) {
            return refuse("duplicate_name", Subject::Source, source.name.as_str());
        }
    }
    let mut subscriptions = BTreeSet::new();
    for subscription in &desired.subscriptions {
        let name = subscription.name.as_str();
        if !subscriptions.insert(name) {
            return refuse("duplicate_name", Subject::Subscription, name);
        }
        if let Some(source) = &subscription.source
            && !sources.contains(source.as_str())
        {
            return refuse("unknown_source", Subject::Subscription, name);
        }
    }
    Ok(())
}

/// Collects the names of the fields that differ.
#[derive(Default)]
pub(super) struct Differences(pub(super) Vec<&'static str>);

impl Differences {
    pub(super) fn note<T: PartialEq + ?Sized>(&mut self, field: &'static str, is: &T, should: &T) {
        if is != should {
            self.0.push(field);
        }
    }
}

/// A value that a CHECK refuses is the manifest's fault and names the constraint;
/// anything else is ours.
pub(super) fn blame(error: sqlx::Error, subject: Subject, name: &str) -> StoreError {
    let error = StoreError::from(error);
    match (&error, error.sqlstate()) {
        (StoreError::Refused(refusal), Some("23514" | "22021" | "22P05" | "22001")) => {
            StoreError::Manifest(ManifestError {
                code: "invalid_value",
                subject,
                name: name.to_owned(),
                constraint: refusal.constraint.clone(),
            })
        }
        _ => error,
    }
}
