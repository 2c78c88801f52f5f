//! The worker's configuration, read once at the start of the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookstead_aws::keys::{KeyFile, KmsKeys, Sealer};
use hookstead_aws::{Aws, AwsConfigError};
use hookstead_egress::{AllowList, Egress, EgressError, EgressSettings};
use hookstead_store::{ConnectionLimits, Connections, StoreError};

use crate::destination::Destinations;
use crate::destinations::{AwsDestination, HttpDestination, NoKeys, OpenSecrets};
use crate::handler::{HandlerDestination, Handlers};
use crate::worker::{Worker, WorkerSettings};

/// Default of `HOOKSTEAD_VISIBILITY_TIMEOUT_S`: six times a function timeout of one
/// minute, as AWS advises for a queue with an event source mapping.
pub const DEFAULT_VISIBILITY_TIMEOUT: Duration = Duration::from_secs(360);

/// Default of `HOOKSTEAD_MAX_LEASES_PER_SUBSCRIPTION`: less than half of what ten
/// batches of ten hold, so that one destination that hangs leaves the larger part of
/// the workers to the others.
pub const DEFAULT_MAX_LEASES_PER_SUBSCRIPTION: u32 = 40;

/// Default of `HOOKSTEAD_HANDLER_CONNECTIONS`: a few handlers of one batch at once. Each
/// environment has this many connections of its own, and a database has few in all.
const DEFAULT_HANDLER_CONNECTIONS: u64 = 2;

/// Connections for claims, finishes and heartbeats. A second one so that a heartbeat
/// does not wait for a finish.
const WORKER_CONNECTIONS: usize = 2;

/// How long a handler waits for a connection: as long as handlers before it may run.
const HANDLER_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(60);

/// What the worker needs to know of its surroundings.
#[derive(Clone)]
pub struct Config {
    /// `HOOKSTEAD_DATABASE_URL`: the PostgreSQL of the deliveries. May hold a password.
    pub database_url: String,
    /// `HOOKSTEAD_VISIBILITY_TIMEOUT_S`: the queue's visibility timeout, 30 s to 12 h.
    pub visibility_timeout: Duration,
    /// `HOOKSTEAD_MAX_LEASES_PER_SUBSCRIPTION`: most deliveries of one subscription that
    /// all workers together attempt at once.
    pub max_leases_per_subscription: u32,
    /// `HOOKSTEAD_HANDLER_CONNECTIONS`: how many handlers run at once in this process.
    pub handler_connections: usize,
    /// `HOOKSTEAD_ALLOW_PRIVATE`: blocks of addresses, with commas between them, that may
    /// be called although they are not public.
    pub allow_private: AllowList,
    /// `HOOKSTEAD_KMS_KEY_ID` or `HOOKSTEAD_KEY_FILE`: what the signing secrets of
    /// subscriptions are sealed under. With neither nothing can be signed, which is
    /// right for a worker that only runs handlers.
    pub key: Option<KeyPlace>,
    /// `AWS_LAMBDA_LOG_STREAM_NAME`, else `HOSTNAME`: the worker's name.
    pub name: String,
    /// `AWS_REGION`: recorded with every attempt.
    pub region: Option<String>,
}

/// Where the key of secrets is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// A key of KMS, by its id.
    Kms(String),
    /// A local file of keys.
    File(PathBuf),
}

/// Everything that is wrong with the configuration, at once.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {}", problems.join("; "))]
pub struct ConfigError {
    problems: Vec<String>,
}

/// Why there can be no worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database cannot be reached as it is configured.
    #[error("the database URL cannot be used")]
    Store(#[from] StoreError),
    /// The key of secrets is in KMS, and AWS cannot be called.
    #[error("the key of secrets cannot be used")]
    Aws(#[from] AwsConfigError),
    /// The client for outgoing requests cannot be made.
    #[error("the client for outgoing requests cannot be made")]
    Egress(#[from] EgressError),
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
        let mut number = |name: &str, default: u64, low: u64, high: u64| {
            let Some(text) = read(name) else {
                return default;
            };
            let value = text
                .parse()
                .ok()
                .filter(|value| (low..=high).contains(value));
            value.unwrap_or_else(|| {
                problems.push(format!("{name} is not a number from {low} to {high}"));
                default
            })
        };
        let visibility_s = number(
            "HOOKSTEAD_VISIBILITY_TIMEOUT_S",
            DEFAULT_VISIBILITY_TIMEOUT.as_secs(),
            30,
            43_200,
        );
        let max_leases = number(
            "HOOKSTEAD_MAX_LEASES_PER_SUBSCRIPTION",
            u64::from(DEFAULT_MAX_LEASES_PER_SUBSCRIPTION),
            1,
            100_000,
        );
        let handlers = number(
            "HOOKSTEAD_HANDLER_CONNECTIONS",
            DEFAULT_HANDLER_CONNECTIONS,
            1,
            100,
        );
        let allow_private = read("HOOKSTEAD_ALLOW_PRIVATE").unwrap_or_default();
        let allow_private = allow_private.parse().unwrap_or_else(|_| {
            let problem = "HOOKSTEAD_ALLOW_PRIVATE is not a list of blocks such as 10.0.0.0/8";
            problems.push(problem.to_owned());
            AllowList::none()
        });
        let kms = read("HOOKSTEAD_KMS_KEY_ID").map(KeyPlace::Kms);
        let file = read("HOOKSTEAD_KEY_FILE").map(|path| KeyPlace::File(path.into()));
        if kms.is_some() && file.is_some() {
            let problem = "HOOKSTEAD_KMS_KEY_ID and HOOKSTEAD_KEY_FILE are both set";
            problems.push(problem.to_owned());
        }
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let name = read("AWS_LAMBDA_LOG_STREAM_NAME").or_else(|| read("HOSTNAME"));
        Ok(Self {
            database_url,
            visibility_timeout: Duration::from_secs(visibility_s),
            max_leases_per_subscription: u32::try_from(max_leases).unwrap_or(u32::MAX),
            handler_connections: usize::try_from(handlers).unwrap_or(1),
            allow_private,
            key: kms.or(file),
            name: name.unwrap_or_else(|| "worker".to_owned()),
            region: read("AWS_REGION"),
        })
    }

    /// What a worker is told about itself.
    #[must_use]
    pub fn settings(&self) -> WorkerSettings {
        WorkerSettings {
            region: self.region.clone(),
            visibility_timeout: self.visibility_timeout,
            max_leases_per_subscription: self.max_leases_per_subscription,
            ..WorkerSettings::named(&self.name)
        }
    }

    /// What opens the signing secrets.
    ///
    /// # Errors
    ///
    /// Where the key is in KMS, and AWS cannot be called.
    pub fn secrets(&self) -> Result<Arc<dyn OpenSecrets>, AwsConfigError> {
        Ok(match &self.key {
            Some(KeyPlace::Kms(id)) => Arc::new(Sealer::new(KmsKeys::new(&Aws::from_env()?, id))),
            Some(KeyPlace::File(path)) => Arc::new(Sealer::new(KeyFile::new(path))),
            None => Arc::new(NoKeys),
        })
    }

    /// A worker with every kind of destination, and these handlers.
    ///
    /// # Errors
    ///
    /// Where its clients cannot be made.
    pub fn worker(&self, handlers: Handlers) -> Result<Worker, StartError> {
        let limits = ConnectionLimits {
            slots: WORKER_CONNECTIONS,
            ..ConnectionLimits::default()
        };
        let handler_limits = ConnectionLimits {
            slots: self.handler_connections,
            acquire_timeout: HANDLER_ACQUIRE_TIMEOUT,
            ..ConnectionLimits::default()
        };
        let connections = Connections::from_url_by_key(&self.database_url, limits)?;
        let for_handlers = Connections::from_url(&self.database_url, handler_limits)?;
        let egress = Egress::new(EgressSettings {
            allowed: self.allow_private.clone(),
            ..EgressSettings::default()
        })?;
        let mut destinations = Destinations::new()
            .with("http", HttpDestination::new(egress, self.secrets()?))
            .with_handlers(HandlerDestination::new(handlers, for_handlers));
        // Without credentials there is no AWS to deliver to: deliveries that want it
        // fail as `invalid_destination`.
        if let Ok(aws) = Aws::from_env() {
            destinations = destinations
                .with("sqs", AwsDestination::sqs(aws.clone()))
                .with("eventbridge", AwsDestination::eventbridge(aws.clone()))
                .with("lambda", AwsDestination::lambda(aws));
        }
        Ok(Worker::new(connections, destinations, self.settings()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let map: HashMap<&str, &str> = pairs.iter().copied().collect();
        Config::read(|name| map.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn defaults_need_only_the_database() {
        let config = read(&[("HOOKSTEAD_DATABASE_URL", "postgres://x")]).unwrap();
        assert_eq!(config.visibility_timeout, Duration::from_secs(360));
        assert_eq!(config.max_leases_per_subscription, 40);
        assert_eq!(config.allow_private, AllowList::none());
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_value_is_quoted() {
        let error = read(&[
            ("HOOKSTEAD_VISIBILITY_TIMEOUT_S", "CANARY"),
            ("HOOKSTEAD_MAX_LEASES_PER_SUBSCRIPTION", "0"),
            ("HOOKSTEAD_ALLOW_PRIVATE", "CANARY"),
            ("HOOKSTEAD_KMS_KEY_ID", "CANARY"),
            ("HOOKSTEAD_KEY_FILE", "CANARY"),
        ]);
        let error = error.err().unwrap().to_string();
        for name in [
            "DATABASE_URL",
            "VISIBILITY_TIMEOUT_S",
            "MAX_LEASES",
            "KEY_FILE",
            "ALLOW_PRIVATE",
        ] {
            assert!(error.contains(name), "{error}");
        }
        assert!(!error.contains("CANARY"));
    }

    #[test]
    fn wrk_07_the_default_timeout_of_an_attempt_fits_the_default_visibility() {
        let timeout_ms = hookstead_domain::RetryPolicy::default().timeout_ms();
        let visibility_ms = u64::try_from(DEFAULT_VISIBILITY_TIMEOUT.as_millis()).unwrap();
        assert!(hookstead_domain::lease_length(timeout_ms, visibility_ms).is_ok());
    }

    #[test]
    fn two_workers_of_one_name_are_told_apart() {
        let config = read(&[("HOOKSTEAD_DATABASE_URL", "postgres://x")]).unwrap();
        assert_ne!(config.settings().worker_id, config.settings().worker_id);
    }
}
