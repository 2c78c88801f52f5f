//! What to start: the settings of a server.

use std::path::PathBuf;

use crate::binaries::Binaries;

/// How much may be lost when the machine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every commit is on the disk before it is acknowledged: development and benches.
    Full,
    /// Nothing waits for the disk: tests, whose data ends with them.
    None,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; made when it is not there.
    pub data_dir: PathBuf,
    /// The programs to use.
    pub binaries: Binaries,
    /// TCP port on 127.0.0.1; 0 picks a free one.
    pub port: u16,
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// More server settings, name and value; a later one wins over an earlier one and over ours.
    pub settings: Vec<(String, String)>,
}

impl Options {
    /// A durable server on a free port with our settings alone.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>, binaries: Binaries) -> Self {
        Self {
            data_dir: data_dir.into(),
            binaries,
            port: 0,
            durability: Durability::Full,
            settings: Vec::new(),
        }
    }

    /// The same with this port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The same with this durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The same with one more server setting.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The command line of a server on this port.
    pub(crate) fn arguments(&self, port: u16) -> Vec<String> {
        let off = match self.durability {
            Durability::Full => &[][..],
            Durability::None => &[
                "fsync=off",
                "synchronous_commit=off",
                "full_page_writes=off",
            ],
        };
        let ours = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "logging_collector=off",
            "log_destination=stderr",
            "timezone=UTC",
            // The log must not become a second copy of what is stored: no statements, and
            // no DETAIL lines, which show the values of refused rows.
            "log_min_error_statement=panic",
            "log_error_verbosity=terse",
        ];
        let mut arguments = vec![
            "-D".to_owned(),
            self.data_dir.display().to_string(),
            "-p".to_owned(),
            port.to_string(),
        ];
        let named = self
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let all = ours.iter().chain(off).map(|setting| (*setting).to_owned());
        for setting in all.chain(named) {
            arguments.extend(["-c".to_owned(), setting]);
        }
        arguments
    }
}
