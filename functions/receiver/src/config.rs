//! The receiver's configuration, read once at the start of the process.

use std::time::Duration;

use hookstead_store::{ConnectionLimits, Connections, StoreError};

/// Default of `HOOKSTEAD_MAX_BODY_BYTES`: 1 MiB, above what the providers with
/// a documented limit send in one request, and far below what the platform takes.
const DEFAULT_MAX_BODY_BYTES: usize = 1024 * 1024;

/// Hard limit of `HOOKSTEAD_MAX_BODY_BYTES`: a synchronous Lambda invocation
/// carries 6 MB, of which base64 leaves about 4.4 MB for a binary body.
const HARD_MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Default of `HOOKSTEAD_STORE_TIMEOUT_MS`. Most providers wait 3 s or more.
const DEFAULT_STORE_TIMEOUT_MS: u64 = 2_500;

/// Share of the store's time, in percent, after which a connection that was idle for
/// long is taken for dead. The rest is for opening another and trying again.
const SUSPECT_TIMEOUT_PERCENT: u32 = 40;

/// What the receiver needs to know of its surroundings.
#[derive(Clone)]
pub struct Config {
    /// `HOOKSTEAD_DATABASE_URL`: the PostgreSQL to store in. May hold a password.
    pub database_url: String,
    /// `HOOKSTEAD_MAX_BODY_BYTES`: the largest body, in bytes, before and after decompression.
    pub max_body_bytes: usize,
    /// `HOOKSTEAD_STORE_TIMEOUT_MS`: after this the answer is 503.
    pub store_timeout: Duration,
    /// `HOOKSTEAD_SECRETS_DIR`: where relative `file:` references start.
    pub secrets_dir: String,
    /// `HOOKSTEAD_DELIVERIES_QUEUE_URL`: the queue on which first attempts are asked for right
    /// after the commit. Without it the relay alone asks.
    pub queue_url: Option<String>,
    /// `AWS_REGION`: recorded with every event.
    pub region: Option<String>,
}

/// Everything that is wrong with the configuration, at once.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {}", problems.join("; "))]
pub struct ConfigError {
    problems: Vec<String>,
}

impl Config {
    /// Reads the configuration from `read`, which looks a variable up by name.
    ///
    /// # Errors
    ///
    /// Names every variable that is missing or cannot be read, never a value.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let database_url = read("HOOKSTEAD_DATABASE_URL").unwrap_or_default();
        if database_url.is_empty() {
            problems.push("HOOKSTEAD_DATABASE_URL is not set".to_owned());
        }
        let mut number = |name: &str, default: u64, range: std::ops::RangeInclusive<u64>| {
            let Some(text) = read(name) else {
                return default;
            };
            match text.parse() {
                Ok(value) if range.contains(&value) => value,
                _ => {
                    let (low, high) = (range.start(), range.end());
                    problems.push(format!("{name} is not a number from {low} to {high}"));
                    default
                }
            }
        };
        let max_body_bytes = number(
            "HOOKSTEAD_MAX_BODY_BYTES",
            DEFAULT_MAX_BODY_BYTES as u64,
            1..=HARD_MAX_BODY_BYTES as u64,
        );
        let store_timeout_ms = number(
            "HOOKSTEAD_STORE_TIMEOUT_MS",
            DEFAULT_STORE_TIMEOUT_MS,
            100..=25_000,
        );
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        Ok(Self {
            database_url,
            max_body_bytes: usize::try_from(max_body_bytes).unwrap_or(DEFAULT_MAX_BODY_BYTES),
            store_timeout: Duration::from_millis(store_timeout_ms),
            secrets_dir: read("HOOKSTEAD_SECRETS_DIR").unwrap_or_else(|| ".".to_owned()),
            queue_url: read("HOOKSTEAD_DELIVERIES_QUEUE_URL").filter(|url| !url.is_empty()),
            region: read("AWS_REGION"),
        })
    }

    /// Connections for `slots` requests at once, within the store's time.
    ///
    /// # Errors
    ///
    /// Where the database URL cannot be read.
    pub fn connections(&self, slots: usize) -> Result<Connections, StoreError> {
        let limits = ConnectionLimits {
            slots,
            acquire_timeout: self.store_timeout,
            connect_timeout: self.store_timeout,
            suspect_timeout: self.store_timeout * SUSPECT_TIMEOUT_PERCENT / 100,
            ..ConnectionLimits::default()
        };
        Connections::from_url(&self.database_url, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let map: HashMap<String, String> = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Config::read(|name| map.get(name).cloned())
    }

    #[test]
    fn defaults_need_only_the_database() {
        let config = read(&[("HOOKSTEAD_DATABASE_URL", "postgres://x")]).unwrap();
        assert_eq!(config.max_body_bytes, 1_048_576);
        assert_eq!(config.store_timeout, Duration::from_millis(2_500));
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_value_is_quoted() {
        let error = read(&[
            ("HOOKSTEAD_MAX_BODY_BYTES", "CANARY"),
            ("HOOKSTEAD_STORE_TIMEOUT_MS", "5"),
        ])
        .err()
        .unwrap()
        .to_string();
        for name in ["DATABASE_URL", "MAX_BODY_BYTES", "STORE_TIMEOUT_MS"] {
            assert!(error.contains(name), "{error}");
        }
        assert!(!error.contains("CANARY"));
    }

    #[test]
    fn the_body_limit_cannot_exceed_what_the_platform_carries() {
        let too_large = (HARD_MAX_BODY_BYTES + 1).to_string();
        let result = read(&[
            ("HOOKSTEAD_DATABASE_URL", "postgres://x"),
            ("HOOKSTEAD_MAX_BODY_BYTES", &too_large),
        ]);
        assert!(result.is_err());
    }
}
