//! Rules over the repository. A broken rule names the file and what to change.
#![allow(clippy::unwrap_used)]

mod cases;
mod dependencies;
mod documents;
mod layout;
mod words;

use std::sync::LazyLock;

use hookstead_system_tests::Repository;

/// Read once for all rules.
static REPOSITORY: LazyLock<Repository> = LazyLock::new(Repository::read);

/// Fails with every broken place at once.
#[track_caller]
fn none_broken(broken: &[String]) {
    assert!(broken.is_empty(), "\n  {}\n", broken.join("\n  "));
}
