//! Which user the server runs as: PostgreSQL refuses root.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Doing as _, Error};

/// The user that PostgreSQL's programs run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// We are an ordinary user: the programs run as ourselves.
    Own {
        /// Our numeric user id.
        uid: u32,
    },
    /// We are root: the programs run as this user and group.
    Dropped {
        /// Numeric user id, never 0.
        uid: u32,
        /// Numeric group id.
        gid: u32,
    },
}

/// Users to drop to, best first: Debian's package makes the first, every Unix has the second.
const FALLBACK_USERS: [&str; 2] = ["postgres", "nobody"];

impl Account {
    /// The account to use now: ourselves, or for root the first of `postgres` and `nobody` that exists.
    ///
    /// # Errors
    /// [`Error::NoAccount`] for root where neither user exists.
    pub fn current() -> Result<Self, Error> {
        let uid = effective_uid()?;
        if uid != 0 {
            return Ok(Self::Own { uid });
        }
        FALLBACK_USERS
            .iter()
            .find_map(|user| Self::of_user(user))
            .ok_or(Error::NoAccount)
    }

    fn of_user(user: &str) -> Option<Self> {
        let uid = id("-u", user)?;
        let gid = id("-g", user)?;
        (uid != 0).then_some(Self::Dropped { uid, gid })
    }

    /// The user id that the server runs with.
    #[must_use]
    pub fn uid(self) -> u32 {
        match self {
            Self::Own { uid } | Self::Dropped { uid, .. } => uid,
        }
    }

    /// Whether we are root and the server runs as another user.
    #[must_use]
    pub fn is_dropped(self) -> bool {
        matches!(self, Self::Dropped { .. })
    }

    /// A command that runs `program` as this account, in a folder every user may enter.
    pub(crate) fn command(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/");
        if let Self::Dropped { uid, gid } = self {
            // The standard library also drops root's supplementary groups with the user id.
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Whether this account may enter `dir`: asked of the system itself, so that every kind
    /// of permission counts.
    pub(crate) fn can_enter(self, dir: &Path) -> bool {
        self.command("sh")
            .args(["-c", "cd -- \"$1\"", "sh"])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Gives `path` to this account.
    pub(crate) fn own(self, path: &Path) -> Result<(), Error> {
        let Self::Dropped { uid, gid } = self else {
            return Ok(());
        };
        let found = std::fs::metadata(path).doing(|| format!("reading {}", path.display()))?;
        if found.uid() == uid {
            return Ok(());
        }
        chown(path, Some(uid), Some(gid)).doing(|| format!("giving {} away", path.display()))
    }
}

/// The standard library has no call for this, and unsafe code is forbidden here: ask `id`.
fn effective_uid() -> Result<u32, Error> {
    let output = Command::new("id")
        .arg("-u")
        .output()
        .doing(|| "running id -u".to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse()
        .map_err(|_| std::io::Error::other(format!("not a user id: {text:?}")))
        .doing(|| "reading the answer of id -u".to_owned())
}

fn id(flag: &str, user: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, user]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().parse().ok())?
}
