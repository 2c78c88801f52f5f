//! The project: the folder of the manifest, and what `dev` keeps beside it.
//!
//! `.hookstead/secrets/NAME` holds the development secret of a source,
//! `.hookstead/keys` the keys that seal signing secrets of subscriptions, and
//! `.hookstead/dev.json` says where a running `dev` listens and stores. Only
//! the user who started `dev` can read either.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::database::Database;
use crate::error::Error;

/// How often the lock of `dev` is tried, and the pause between: far longer than
/// a look takes, and nothing that a person notices.
const LOCK_TRIES: usize = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The option that says which project a command works on.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProjectArguments {
    /// The manifest; its folder is the project
    #[arg(
        long,
        value_name = "FILE",
        env = "HOOKSTEAD_MANIFEST",
        default_value = "hookstead.toml"
    )]
    pub(crate) manifest: PathBuf,
}

/// The folder that holds the manifest.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    folder: PathBuf,
}

/// What a running `dev` tells the other commands.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// The address of the receiver: `http://127.0.0.1:8080`.
    pub(crate) url: String,
    /// Its database.
    pub(crate) database: Database,
    /// Blocks of addresses that are not public and that it calls all the same.
    pub(crate) allow_private: String,
}

impl Project {
    /// The project of this manifest. The manifest need not be there.
    pub(crate) fn of(arguments: &ProjectArguments) -> Result<Self, Error> {
        let path = &arguments.manifest;
        let absolute = std::path::absolute(path).map_err(|source| Error::File {
            doing: "cannot find the folder of",
            path: path.clone(),
            source,
        })?;
        let folder = absolute
            .parent()
            .map_or(PathBuf::from("/"), Path::to_path_buf);
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn state(&self) -> PathBuf {
        self.folder.join(".hookstead")
    }

    /// Where the development secret of a source is, from the project's folder.
    pub(crate) fn secret_reference(source_name: &str) -> String {
        format!("file:.hookstead/secrets/{source_name}")
    }

    /// The file of the keys that seal signing secrets. Its folder is there.
    pub(crate) fn key_file(&self) -> Result<PathBuf, Error> {
        self.make_state()?;
        Ok(self.state().join("keys"))
    }

    /// The file of the development secret of a source.
    pub(crate) fn secret_path(&self, source_name: &str) -> PathBuf {
        self.state().join("secrets").join(source_name)
    }

    /// Writes a file that only its owner can read, whole or not at all.
    pub(crate) fn write_private(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let failed = |source| Error::File {
            doing: "cannot write",
            path: path.to_path_buf(),
            source,
        };
        // The server's account passes through this folder to its data; it reads nothing else here.
        self.make_state()?;
        if let Some(parent) = path.parent().filter(|parent| *parent != self.state()) {
            self.make_folder(parent, 0o700)?;
        }
        let partial = path.with_extension("partial");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)
            .map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        fs::rename(&partial, path).map_err(failed)
    }

    /// The folder of the state, kept out of version control: it holds secrets.
    fn make_state(&self) -> Result<(), Error> {
        self.make_folder(&self.state(), 0o755)?;
        let path = self.state().join(".gitignore");
        if path.exists() {
            return Ok(());
        }
        fs::write(&path, "*\n").map_err(|source| Error::File {
            doing: "cannot write",
            path,
            source,
        })
    }

    fn make_folder(&self, path: &Path, mode: u32) -> Result<(), Error> {
        let made = DirBuilder::new().recursive(true).mode(mode).create(path);
        made.map_err(|source| Error::File {
            doing: "cannot make",
            path: path.to_path_buf(),
            source,
        })
    }

    fn running_path(&self) -> PathBuf {
        self.state().join("dev.json")
    }

    /// Makes this process the one `dev` of the project.
    pub(crate) fn lock(&self) -> Result<DevLock, Error> {
        self.make_state()?;
        let path = self.state().join("dev.lock");
        let failed = |source| Error::File {
            doing: "cannot lock",
            path: path.clone(),
            source,
        };
        let file = open_lock(&path).map_err(failed)?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(DevLock {
                        announced: self.running_path(),
                        _file: file,
                    });
                }
                // Another command may be looking whether a `dev` runs, for a moment.
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        Err(Error::AlreadyRunning {
            folder: self.folder.clone(),
        })
    }

    /// Tells the other commands where `dev` is.
    pub(crate) fn announce(&self, _lock: &DevLock, running: &Running) -> Result<(), Error> {
        let path = self.running_path();
        let text = serde_json::to_vec(running).map_err(|source| Error::File {
            doing: "cannot write",
            path: path.clone(),
            source: source.into(),
        })?;
        self.write_private(&path, &text)
    }

    /// The running `dev` of this project, if there is one.
    ///
    /// The system gives the lock back however `dev` ended, so a file that a
    /// killed one left behind is not believed.
    pub(crate) fn running(&self) -> Option<Running> {
        let file = fs::File::open(self.state().join("dev.lock")).ok()?;
        match file.try_lock_shared() {
            Err(fs::TryLockError::WouldBlock) => {}
            Ok(()) | Err(fs::TryLockError::Error(_)) => return None,
        }
        let text = fs::read(self.running_path()).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn open_lock(path: &Path) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// The right to be the project's `dev`. Dropping it takes the announcement back.
pub(crate) struct DevLock {
    announced: PathBuf,
    _file: fs::File,
}

impl Drop for DevLock {
    fn drop(&mut self) {
        // One that stays is not believed once the lock is gone.
        fs::remove_file(&self.announced).ok();
    }
}
