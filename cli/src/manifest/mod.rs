//! `hookstead.toml`: sources and subscriptions as their owner writes them.
//!
//! Every problem of the file is found in one reading, each with its line, table,
//! field and a stable code. docs/manifest.md is the reference.

mod destination;
mod fields;
mod problem;
mod source;
mod subscription;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use hookstead_egress::AllowList;
use toml::de::{DeTable, DeValue};

pub(crate) use destination::{Destination, Http};
pub(crate) use problem::{Problem, Problems};
pub(crate) use source::{SecretRef, Source};
pub(crate) use subscription::{Retry, Subscription};

use crate::error::Error;
use fields::{Fields, Text};

/// What the file says, checked as far as it can be without a database.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// What messages call the file.
    pub(crate) file: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) subscriptions: Vec<Subscription>,
}

impl Manifest {
    /// Reads the file and checks all of it.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::usage(
                "manifest_not_found",
                format!(
                    "there is no manifest {}: name one with --manifest, or write one (docs/manifest.md)",
                    path.display()
                ),
            ),
            _ => Error::File {
                doing: "cannot read",
                path: path.to_path_buf(),
                source,
            },
        })?;
        Self::parse(&path.display().to_string(), &text).map_err(Error::from)
    }

    /// Checks the text of a manifest; `file` stands in the messages.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Problems> {
        let mut problems = Problems::new(file);
        let text = Text::new(text);
        let (root, errors) = DeTable::parse_recoverable(text.as_str());
        for error in &errors {
            let line = error.span().map(|span| text.line(span.start));
            problems.add(Problem::syntax(line, error.message()));
        }
        if !errors.is_empty() {
            // What was half read would only add problems that are none.
            return Err(problems);
        }
        let mut root = Fields::new("manifest", root, &text, &mut problems);
        let sources = root.tables("source");
        let subscriptions = root.tables("subscription");
        root.finish();
        let sources: Vec<Source> = sources
            .into_iter()
            .filter_map(|(at, table)| source::read(at, table, &text, &mut problems))
            .collect();
        let names: BTreeSet<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let subscriptions: Vec<Subscription> = subscriptions
            .into_iter()
            .filter_map(|(at, table)| subscription::read(at, table, &names, &text, &mut problems))
            .collect();
        no_name_twice(
            sources.iter().map(|s| ("source", s.name.as_str(), s.line)),
            &mut problems,
        );
        let named = subscriptions
            .iter()
            .map(|s| ("subscription", s.name.as_str(), s.line));
        no_name_twice(named, &mut problems);
        problems.into_result(Self {
            file: file.to_owned(),
            sources,
            subscriptions,
        })
    }

    /// What of it leads to an address that may not be called from here.
    pub(crate) fn check_addresses(&self, allowed: &AllowList) -> Result<(), Problems> {
        let mut problems = Problems::new(&self.file);
        for subscription in self.subscriptions.iter().filter(|one| one.enabled) {
            let Destination::Http(http) = &subscription.destination else {
                continue;
            };
            if !http.is_allowed(allowed) {
                problems.add(Problem {
                    line: Some(subscription.destination_line),
                    table: format!(
                        "subscription \"{}\", destination",
                        subscription.name.as_str()
                    ),
                    field: "url".to_owned(),
                    code: "address_not_allowed",
                    message: crate::private::refusal(),
                });
            }
        }
        problems.into_result(())
    }

    /// The source of this name.
    pub(crate) fn source(&self, name: &str) -> Option<&Source> {
        self.sources
            .iter()
            .find(|source| source.name.as_str() == name)
    }
}

fn no_name_twice<'a>(
    names: impl Iterator<Item = (&'static str, &'a str, usize)>,
    problems: &mut Problems,
) {
    let mut seen = BTreeSet::new();
    for (table, name, line) in names {
        if !seen.insert(name) {
            problems.add(Problem {
                line: Some(line),
                table: format!("{table} \"{name}\""),
                field: "name".to_owned(),
                code: "duplicate_name",
                message: "another one above has this name".to_owned(),
            });
        }
    }
}

/// The word for what stands where something else was expected.
fn type_word(value: &DeValue<'_>) -> &'static str {
    value.type_str()
}
