//! Where things are in the repository.

use std::path::PathBuf;

use anyhow::Context as _;
use cargo_metadata::MetadataCommand;

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
