//! What is wrong with a manifest.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong. Values are quoted only where they cannot be secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The line in the file, from 1.
    pub(crate) line: Option<usize>,
    /// `source "stripe-main"`, or `source 2` where it has no name.
    pub(crate) table: String,
    /// The field, empty where the table itself is meant.
    pub(crate) field: String,
    /// A stable code; docs/manifest.md lists them.
    pub(crate) code: &'static str,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn syntax(line: Option<usize>, message: &str) -> Self {
        Self {
            line,
            table: "manifest".to_owned(),
            field: String::new(),
            code: "syntax",
            message: format!("not TOML: {message}"),
        }
    }
}

/// Everything that is wrong with one file, in the order of its lines.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    pub(super) found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn new(file: impl Into<String>) -> Self {
        let file = file.into();
        let found = Vec::new();
        Self { file, found }
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        self.found.push(problem);
    }

    /// `value`, unless something is wrong.
    pub(crate) fn into_result<T>(mut self, value: T) -> Result<T, Self> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|problem| problem.line);
        Err(self)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, file) = (self.found.len(), &self.file);
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "{count} {noun} in {file}")?;
        for problem in &self.found {
            write!(f, "\n  {file}")?;
            if let Some(line) = problem.line {
                write!(f, ":{line}")?;
            }
            write!(f, ": {}", problem.table)?;
            if !problem.field.is_empty() {
                write!(f, ", {}", problem.field)?;
            }
            write!(f, ": {} [{}]", problem.message, problem.code)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
