//! Where data and fetched programs live.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::account::Account;
use crate::error::{Doing as _, Error};

/// The folder for things that can be fetched again: `/var/cache/hookstead` for root,
/// else `$XDG_CACHE_HOME/hookstead` or `~/.cache/hookstead`.
///
/// # Errors
/// Where the account to run as cannot be told, or there is no home folder.
pub fn cache_dir() -> Result<PathBuf, Error> {
    place("/var/cache/hookstead", "XDG_CACHE_HOME", ".cache")
}

/// The folder for data that has no better place: `/var/lib/hookstead` for root,
/// else `$XDG_STATE_HOME/hookstead` or `~/.local/state/hookstead`.
///
/// # Errors
/// As [`cache_dir`].
pub fn state_dir() -> Result<PathBuf, Error> {
    place("/var/lib/hookstead", "XDG_STATE_HOME", ".local/state")
}

fn place(for_root: &str, variable: &str, below_home: &str) -> Result<PathBuf, Error> {
    if Account::current()?.is_dropped() {
        // The account root drops to cannot enter root's home.
        return Ok(PathBuf::from(for_root));
    }
    // The base directory rules ignore a relative path in the variable.
    let named = std::env::var_os(variable).map(PathBuf::from);
    if let Some(base) = named.filter(|path| path.is_absolute()) {
        return Ok(base.join("hookstead"));
    }
    std::env::home_dir()
        .map(|home| home.join(below_home).join("hookstead"))
        .ok_or_else(|| std::io::Error::other("no home folder is known"))
        .doing(|| format!("looking for a place ({variable} is not set either)"))
}

/// The data directory of a project: `.hookstead/postgres` in it, or, where the server's
/// account cannot enter the project, a folder of the project's own under [`state_dir`].
///
/// # Errors
/// Where `project` does not exist, or as [`state_dir`].
pub fn project_data_dir(project: &Path) -> Result<PathBuf, Error> {
    let project = project
        .canonicalize()
        .doing(|| format!("finding {}", project.display()))?;
    if Account::current()?.can_enter(&project) {
        return Ok(project.join(".hookstead").join("postgres"));
    }
    let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
    // 64 bits tell one machine's projects apart.
    let name = hex::encode(&digest[..8]);
    Ok(state_dir()?.join("projects").join(name).join("postgres"))
}
