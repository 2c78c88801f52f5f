//! Finding PostgreSQL's programs on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::binaries::{Binaries, FETCHED_MAJOR, OLDEST_MAJOR, Origin};
use crate::error::Error;
use crate::fetch;
use crate::places::cache_dir;

/// What a folder must hold: the server, and the program that makes its data directory.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// Folders whose children may be installations, with what follows the child.
/// Debian and Ubuntu; Homebrew on both processors; the upstream RPM packages.
const PACKAGED: [(&str, &str, &str); 4] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/usr", "pgsql-", "bin"),
];

/// Where to look. [`Search::from_env`] is the real one; tests make their own.
#[derive(Clone, Debug)]
pub struct Search {
    /// The folder of HOOKSTEAD_PG_BIN, where set.
    pub explicit: Option<PathBuf>,
    /// The folders of PATH, in order; also where `pg_config` and Python are looked for.
    pub path: Vec<PathBuf>,
    /// Folders of well-known installations.
    pub packaged: Vec<PathBuf>,
    /// The cache that fetched programs are kept in.
    pub cache: PathBuf,
    /// The account that has to be able to run the programs.
    pub account: Account,
}

impl Search {
    /// The search over this process's environment.
    ///
    /// # Errors
    /// Where the account to run as or the cache folder cannot be told.
    pub fn from_env() -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Ok(Self {
            explicit: std::env::var_os("HOOKSTEAD_PG_BIN")
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            path: std::env::split_paths(&path).collect(),
            packaged: packaged_dirs(),
            cache: cache_dir()?,
            account: Account::current()?,
        })
    }

    /// See [`Binaries::find`].
    ///
    /// # Errors
    /// As [`Binaries::find`].
    pub fn find(&self) -> Result<Binaries, Error> {
        let mut looked = Vec::new();
        self.first(&mut looked, |major| major >= OLDEST_MAJOR)?
            .ok_or_else(|| Error::NotFound {
                looked: say(&looked),
            })
    }

    /// See [`Binaries::find_major`].
    ///
    /// # Errors
    /// As [`Binaries::find_major`].
    pub fn find_major(&self, major: u16) -> Result<Binaries, Error> {
        let mut looked = Vec::new();
        self.first(&mut looked, |found| found == major)?
            .ok_or_else(|| Error::MajorNotFound {
                major,
                looked: say(&looked),
            })
    }

    /// See [`Binaries::fetch`].
    ///
    /// # Errors
    /// As [`Binaries::fetch`].
    pub fn fetch(&self) -> Result<Binaries, Error> {
        let bin_dir = fetch::fetch(self)?;
        let version = self
            .probe(&bin_dir)
            .map_err(|problem| Error::Fetch { problem })?;
        Ok(Binaries {
            bin_dir,
            version,
            origin: Origin::Fetched,
        })
    }

    /// See [`Binaries::obtain`].
    ///
    /// # Errors
    /// As [`Binaries::obtain`].
    pub fn obtain(&self) -> Result<Binaries, Error> {
        match self.find() {
            Err(Error::NotFound { looked }) => self.fetch().map_err(|cause| match cause {
                Error::Fetch { problem } => Error::NotFound {
                    looked: format!("{looked}; fetching it failed: {problem}"),
                },
                other => other,
            }),
            found => found,
        }
    }

    /// See [`Binaries::obtain_major`].
    ///
    /// # Errors
    /// As [`Binaries::obtain_major`].
    pub fn obtain_major(&self, major: u16) -> Result<Binaries, Error> {
        match self.find_major(major) {
            Err(Error::MajorNotFound { .. }) if major == FETCHED_MAJOR => self.fetch(),
            found => found,
        }
    }

    /// The first usable set whose major version is wanted; `looked` collects what was wrong elsewhere.
    fn first(
        &self,
        looked: &mut Vec<String>,
        wanted: impl Fn(u16) -> bool,
    ) -> Result<Option<Binaries>, Error> {
        if let Some(dir) = &self.explicit {
            let version = self.probe_explicit(dir)?;
            // One of another version than wanted leaves the search going, so that a run
            // over several versions works beside it.
            if wanted(version.0) {
                return Ok(Some(Binaries {
                    bin_dir: dir.clone(),
                    version,
                    origin: Origin::Explicit,
                }));
            }
        }
        let mut seen = BTreeSet::new();
        for (bin_dir, origin) in self.candidates() {
            if !seen.insert(bin_dir.clone()) {
                continue;
            }
            match self.probe(&bin_dir) {
                Ok(version) if wanted(version.0) => {
                    return Ok(Some(Binaries {
                        bin_dir,
                        version,
                        origin,
                    }));
                }
                Ok((major, minor)) => {
                    looked.push(format!("{} is {major}.{minor}", bin_dir.display()));
                }
                Err(problem) => looked.push(format!("{}: {problem}", bin_dir.display())),
            }
        }
        Ok(None)
    }

    fn candidates(&self) -> Vec<(PathBuf, Origin)> {
        let mut dirs = Vec::new();
        dirs.extend(self.pg_config_dir());
        // `postgres` on PATH is often a link into the real folder, where initdb is too.
        let on_path = self.path.iter().map(|dir| dir.join("postgres"));
        dirs.extend(
            on_path
                .filter_map(|program| program.canonicalize().ok())
                .filter_map(|program| program.parent().map(Path::to_path_buf)),
        );
        dirs.extend(self.packaged.iter().cloned());
        let machine = dirs.into_iter().map(|dir| (dir, Origin::Machine));
        let cached = fetch::bin_dir(&self.cache);
        let fetched = cached.is_dir().then_some((cached, Origin::Fetched));
        machine.chain(fetched).collect()
    }

    fn pg_config_dir(&self) -> Option<PathBuf> {
        let program = self.on_path("pg_config")?;
        let output = Command::new(program).arg("--bindir").output().ok()?;
        let dir = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        // Client packages ship pg_config without the server: that is no answer.
        dir.join("postgres").is_file().then_some(dir)
    }

    /// The first file of this name in the folders of PATH.
    pub(crate) fn on_path(&self, program: &str) -> Option<PathBuf> {
        let mut programs = self.path.iter().map(|dir| dir.join(program));
        programs.find(|path| path.is_file())
    }

    fn probe_explicit(&self, dir: &Path) -> Result<(u16, u16), Error> {
        let problem = match self.probe(dir) {
            Ok(version) if version.0 >= OLDEST_MAJOR => return Ok(version),
            Ok((major, minor)) => {
                format!(
                    "it is PostgreSQL {major}.{minor}, and {OLDEST_MAJOR} is the oldest that works"
                )
            }
            Err(problem) => problem,
        };
        Err(Error::ExplicitUnusable {
            dir: dir.to_path_buf(),
            problem,
        })
    }

    /// The version of the programs in `dir`, or what is wrong with them.
    fn probe(&self, dir: &Path) -> Result<(u16, u16), String> {
        for name in PROGRAMS {
            if !dir.join(name).exists() {
                return Err(format!("has no {name}, or it cannot be reached"));
            }
        }
        let output = self
            .account
            .command(dir.join("postgres"))
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("postgres does not run: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let problem = String::from_utf8_lossy(&output.stderr);
            return Err(format!("postgres does not run: {}", problem.trim()));
        }
        parse_version(&said).ok_or_else(|| format!("unknown version {:?}", said.trim()))
    }
}

fn say(looked: &[String]) -> String {
    if looked.is_empty() {
        "looked on PATH and in the usual folders".to_owned()
    } else {
        looked.join("; ")
    }
}

/// Existing well-known folders, the newest version first.
fn packaged_dirs() -> Vec<PathBuf> {
    let mut found: Vec<(u16, PathBuf)> = Vec::new();
    for (parent, prefix, below) in PACKAGED {
        let Ok(children) = std::fs::read_dir(parent) else {
            continue;
        };
        for child in children.flatten() {
            let name = child.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if let Some(major) = version.and_then(|version| version.parse().ok()) {
                found.push((major, child.path().join(below)));
            }
        }
    }
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    let mut dirs: Vec<PathBuf> = found.into_iter().map(|(_, dir)| dir).collect();
    // Where PostgreSQL's own `make install` puts it.
    dirs.push(PathBuf::from("/usr/local/pgsql/bin"));
    dirs.retain(|dir| dir.is_dir());
    dirs
}

/// Reads "postgres (PostgreSQL) 15.18 (Debian …)", "… 18.1" and "… 19beta2".
fn parse_version(said: &str) -> Option<(u16, u16)> {
    let version = said
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next().and_then(|minor| minor.parse().ok());
    Some((major, minor.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn versions_of_released_packaged_and_beta_servers_are_read() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_version(debian), Some((15, 18)));
        assert_eq!(parse_version("postgres (PostgreSQL) 18.1"), Some((18, 1)));
        assert_eq!(
            parse_version("postgres (PostgreSQL) 19beta2"),
            Some((19, 0))
        );
        assert_eq!(parse_version("not a server"), None);
    }
}
