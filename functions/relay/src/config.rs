//! The relay's configuration, read once at the start of the process.

use std::fmt;
use std::sync::Arc;

use hookstead_aws::Aws;
use hookstead_aws::queue::SqsQueue;
use hookstead_egress::{AllowList, Egress, EgressError, EgressSettings, Target, TargetError};
use hookstead_secrets::LocalSecrets;
use hookstead_store::{ConnectionLimits, Connections, StoreError};

use crate::control_plane::ControlPlane;
use crate::phase::Phase;
use crate::relay::{Queues, Relay, RelaySettings};

/// What the relay needs to know of its surroundings.
#[derive(Clone)]
pub struct Config {
    /// `HOOKSTEAD_DATABASE_URL`: the PostgreSQL to work on. May hold a password.
    pub database_url: String,
    /// `HOOKSTEAD_DELIVERIES_QUEUE_URL`: the SQS queue that workers read.
    pub deliveries_queue_url: String,
    /// `HOOKSTEAD_DEAD_LETTER_QUEUE_URL`: the SQS queue of dead letters.
    pub dead_letter_queue_url: String,
    /// `HOOKSTEAD_CONTROL_PLANE_URL` and `HOOKSTEAD_CONTROL_PLANE_SECRET`: both or neither.
    pub control_plane: Option<ControlPlaneConfig>,
    /// `HOOKSTEAD_SECRETS_DIR`: where relative `file:` references start.
    pub secrets_dir: String,
    /// `HOOKSTEAD_ALLOW_PRIVATE`: blocks of addresses, with commas between them, that may
    /// be called although they are not public.
    pub allow_private: AllowList,
    /// `AWS_LAMBDA_LOG_STREAM_NAME`, else `HOSTNAME`: the relay's name.
    pub name: String,
    /// What calls AWS: `AWS_REGION` and the credentials.
    pub aws: Aws,
    /// `AWS_REGION`: recorded with attempts that were lost.
    pub region: Option<String>,
}

/// Where reports go.
#[derive(Clone)]
pub struct ControlPlaneConfig {
    /// An https URL.
    pub url: String,
    /// A reference to a Standard Webhooks secret: `env:NAME` or `file:PATH`.
    pub secret_ref: String,
}

/// Everything that is wrong with the configuration, at once.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {}", problems.join("; "))]
pub struct ConfigError {
    problems: Vec<String>,
}

/// Why there can be no relay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database cannot be reached as it is configured.
    #[error("the database URL cannot be used")]
    Store(#[from] StoreError),
    /// The client for outgoing requests cannot be made.
    #[error("the client for outgoing requests cannot be made")]
    Egress(#[from] EgressError),
    /// The control plane may not be called.
    #[error("the control plane's URL cannot be used")]
    ControlPlane(#[from] TargetError),
}

impl Config {
    /// Reads the configuration from `read`, which looks a variable up by name.
    ///
    /// # Errors
    ///
    /// Names every variable that is missing or cannot be read, never a value.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let read = |name: &str| read(name).filter(|value| !value.is_empty());
        let mut problems = Vec::new();
        let mut need = |name: &str| {
            read(name).unwrap_or_else(|| {
                problems.push(format!("{name} is not set"));
                String::new()
            })
        };
        let database_url = need("HOOKSTEAD_DATABASE_URL");
        let deliveries_queue_url = need("HOOKSTEAD_DELIVERIES_QUEUE_URL");
        let dead_letter_queue_url = need("HOOKSTEAD_DEAD_LETTER_QUEUE_URL");
        let allow_private = read("HOOKSTEAD_ALLOW_PRIVATE").unwrap_or_default();
        let allow_private = allow_private.parse().unwrap_or_else(|_| {
            let problem = "HOOKSTEAD_ALLOW_PRIVATE is not a list of blocks such as 10.0.0.0/8";
            problems.push(problem.to_owned());
            AllowList::none()
        });
        let control_plane = control_plane(&read, &allow_private, &mut problems);
        let aws = Aws::read(read).map_err(|error| problems.push(error.to_string()));
        let name = read("AWS_LAMBDA_LOG_STREAM_NAME").or_else(|| read("HOSTNAME"));
        match aws {
            Ok(aws) if problems.is_empty() => Ok(Self {
                database_url,
                deliveries_queue_url,
                dead_letter_queue_url,
                control_plane,
                secrets_dir: read("HOOKSTEAD_SECRETS_DIR").unwrap_or_else(|| ".".to_owned()),
                allow_private,
                name: name.unwrap_or_else(|| "relay".to_owned()),
                aws,
                region: read("AWS_REGION"),
            }),
            _ => Err(ConfigError { problems }),
        }
    }

    /// A relay on SQS.
    ///
    /// # Errors
    ///
    /// Where its clients cannot be made.
    pub fn relay(&self) -> Result<Relay, StartError> {
        let connections = Connections::from_url(&self.database_url, connection_limits())?;
        let queues = Queues {
            deliveries: Arc::new(SqsQueue::new(&self.aws, &self.deliveries_queue_url)),
            dead_letters: Arc::new(SqsQueue::new(&self.aws, &self.dead_letter_queue_url)),
        };
        let control_plane = match &self.control_plane {
            Some(config) => Some(self.connect(config)?),
            None => None,
        };
        let settings = RelaySettings {
            region: self.region.clone(),
            ..RelaySettings::named(&self.name)
        };
        Ok(Relay::new(connections, queues, control_plane, settings))
    }

    fn connect(&self, config: &ControlPlaneConfig) -> Result<ControlPlane, StartError> {
        let egress = Egress::new(EgressSettings {
            allowed: self.allow_private.clone(),
            ..EgressSettings::default()
        })?;
        let secrets = Arc::new(LocalSecrets::new(&self.secrets_dir));
        let (url, secret_ref) = (&config.url, &config.secret_ref);
        let control_plane = ControlPlane::new(egress, url, false, secret_ref, secrets)?;
        Ok(control_plane)
    }
}

/// One connection per phase, so that none waits for another's.
#[must_use]
pub fn connection_limits() -> ConnectionLimits {
    ConnectionLimits {
        slots: Phase::ALL.len(),
        ..ConnectionLimits::default()
    }
}

fn control_plane(
    read: &impl Fn(&str) -> Option<String>,
    allow_private: &AllowList,
    problems: &mut Vec<String>,
) -> Option<ControlPlaneConfig> {
    const URL: &str = "HOOKSTEAD_CONTROL_PLANE_URL";
    const SECRET: &str = "HOOKSTEAD_CONTROL_PLANE_SECRET";
    match (read(URL), read(SECRET)) {
        (None, None) => None,
        (Some(_), None) => {
            problems.push(format!("{SECRET} is not set, though {URL} is"));
            None
        }
        (None, Some(_)) => {
            problems.push(format!("{URL} is not set, though {SECRET} is"));
            None
        }
        (Some(url), Some(secret_ref)) => {
            if let Err(error) = Target::parse_allowing(&url, false, allow_private) {
                problems.push(format!("{URL} {error}"));
            }
            if !secret_ref.starts_with("env:") && !secret_ref.starts_with("file:") {
                problems.push(format!("{SECRET} is not of the form env:NAME or file:PATH"));
            }
            Some(ControlPlaneConfig { url, secret_ref })
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("reports", &self.control_plane.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const WHOLE: [(&str, &str); 6] = [
        ("HOOKSTEAD_DATABASE_URL", "postgres://CANARY1@localhost/x"),
        (
            "HOOKSTEAD_DELIVERIES_QUEUE_URL",
            "https://sqs.example/1/deliveries",
        ),
        (
            "HOOKSTEAD_DEAD_LETTER_QUEUE_URL",
            "https://sqs.example/1/dead",
        ),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "CANARY2"),
        ("AWS_SECRET_ACCESS_KEY", "CANARY3"),
    ];

    fn read(base: &[(&str, &str)], more: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let all = base.iter().chain(more).copied();
        let map: HashMap<&str, &str> = all.collect();
        Config::read(|name| map.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn without_a_control_plane_there_is_a_relay_that_reports_nothing() {
        let config = read(&WHOLE, &[]).unwrap();
        assert!(config.control_plane.is_none());
        assert!(config.relay().is_ok());
        assert!(!format!("{config:?}").contains("CANARY"));
    }

    #[test]
    fn every_problem_is_reported_at_once_and_no_value_is_quoted() {
        let error = read(
            &[],
            &[
                ("HOOKSTEAD_ALLOW_PRIVATE", "CANARY"),
                ("HOOKSTEAD_CONTROL_PLANE_URL", "http://CANARY.example/"),
                ("HOOKSTEAD_CONTROL_PLANE_SECRET", "whsec_CANARY"),
            ],
        );
        let error = error.err().unwrap().to_string();
        for said in [
            "HOOKSTEAD_DATABASE_URL is not set",
            "HOOKSTEAD_DELIVERIES_QUEUE_URL is not set",
            "HOOKSTEAD_DEAD_LETTER_QUEUE_URL is not set",
            "HOOKSTEAD_ALLOW_PRIVATE is not a list",
            "HOOKSTEAD_CONTROL_PLANE_URL must be https",
            "HOOKSTEAD_CONTROL_PLANE_SECRET is not of the form",
            "AWS_REGION",
        ] {
            assert!(error.contains(said), "{said}: {error}");
        }
        assert!(!error.contains("CANARY"), "{error}");
    }

    #[test]
    fn a_control_plane_has_a_url_and_a_secret_or_there_is_none() {
        let url = (
            "HOOKSTEAD_CONTROL_PLANE_URL",
            "https://control.example/reports",
        );
        let secret = ("HOOKSTEAD_CONTROL_PLANE_SECRET", "env:REPORTS");
        let problem = |more: &[_]| read(&WHOLE, more).err().unwrap().to_string();
        assert!(problem(&[url]).contains("SECRET is not set"));
        assert!(problem(&[secret]).contains("URL is not set"));
        let config = read(&WHOLE, &[url, secret]).unwrap();
        assert!(config.relay().is_ok());
        assert!(!format!("{config:?}").contains("control.example"));
    }
}
