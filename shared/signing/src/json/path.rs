//! Paths into JSON documents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest path accepted. Real schemes need six steps.
const MAX_STEPS: usize = 16;

/// A path such as `$.data.items[0].id`, `$["a.b"]` or, where several values make sense, `$[*].id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPath {
    pub(super) text: String,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
    Each,
}

/// A path that is not of the form described at [`JsonPath`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a JSON path: write it like $.data.items[0].id")]
pub struct JsonPathError(String);

impl JsonPath {
    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn has_wildcard(&self) -> bool {
        self.steps.contains(&Step::Each)
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, JsonPathError> {
        let wrong = || JsonPathError(text.to_owned());
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, tail) = next_step(rest).ok_or_else(wrong)?;
            steps.push(step);
            rest = tail;
            if steps.len() > MAX_STEPS {
                return Err(wrong());
            }
        }
        let text = text.to_owned();
        Ok(Self { text, steps })
    }
}

fn next_step(rest: &str) -> Option<(Step, &str)> {
    if let Some(tail) = rest.strip_prefix('.') {
        let end = tail.find(['.', '[']).unwrap_or(tail.len());
        let (key, tail) = tail.split_at(end);
        return (!key.is_empty()).then(|| (Step::Key(key.to_owned()), tail));
    }
    if let Some(tail) = rest.strip_prefix("[\"") {
        let (key, tail) = tail.split_once("\"]")?;
        return Some((Step::Key(key.to_owned()), tail));
    }
    let (inside, tail) = rest.strip_prefix('[')?.split_once(']')?;
    if inside == "*" {
        return Some((Step::Each, tail));
    }
    Some((Step::Index(inside.parse().ok()?), tail))
}

impl TryFrom<String> for JsonPath {
    type Error = JsonPathError;
    fn try_from(text: String) -> Result<Self, JsonPathError> {
        text.parse()
    }
}

impl From<JsonPath> for String {
    fn from(path: JsonPath) -> Self {
        path.text
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
