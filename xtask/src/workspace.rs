//! Where things are in the repository.

use std::path::PathBuf;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo run`; it is right even where clones share a target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Cargo's target folder, which may be set to another place.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .context("asking cargo for the workspace")?;
    Ok(metadata.target_directory.into())
}

/// The packages with tests that need a database: those that use the test support crate, and it.
pub(crate) fn database_packages() -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .context("asking cargo for the workspace")?;
    let uses_testkit = |package: &&cargo_metadata::Package| {
        let mut dependencies = package.dependencies.iter();
        package.name == TESTKIT
            || dependencies
                .any(|one| one.name == TESTKIT && one.kind == DependencyKind::Development)
    };
    let packages = metadata.packages.iter().filter(uses_testkit);
    Ok(packages.map(|package| package.name.to_string()).collect())
}

const TESTKIT: &str = "hookstead-testkit";
