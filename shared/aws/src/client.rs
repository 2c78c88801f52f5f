//! The one place that makes clients of AWS.

mod connections;

use std::fmt;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;

use self::connections::Connections;

/// How long one try of a call may take. AWS's own services answer small calls in
/// milliseconds; a function has seconds in all.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a call may take with all its tries: two that hang, and a third.
const CALL_TIMEOUT: Duration = Duration::from_secs(12);

/// Tries of a call that fails in a way that may pass: the SDK's own default, written
/// down so that it does not change with a version.
const ATTEMPTS: u32 = 3;

/// What every client shares: region, credentials, endpoint, limits of time, and the
/// connections.
///
/// Everything comes from environment variables, as Lambda sets them. Profiles, single
/// sign-on and the metadata of machines are not looked at: they cost time at a start,
/// and a function must never act as somebody else because its own role is missing.
///
/// Making one reads no file and opens no connection.
#[derive(Clone)]
pub struct Aws {
    config: SdkConfig,
}

/// Everything that is missing for calling AWS, at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("AWS cannot be called: {}", missing.join(", ") + " not set")]
pub struct AwsConfigError {
    missing: Vec<&'static str>,
}

impl Aws {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// As [`Aws::read`].
    pub fn from_env() -> Result<Self, AwsConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads `AWS_REGION` or `AWS_DEFAULT_REGION`, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, and where they are set `AWS_SESSION_TOKEN` and
    /// `AWS_ENDPOINT_URL`, the address of an emulator. `read` looks a variable up by name.
    ///
    /// # Errors
    /// Names every variable that is missing, never a value.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Self, AwsConfigError> {
        let read = |name| read(name).filter(|value| !value.is_empty());
        let mut missing = Vec::new();
        let mut need = |name, value: Option<String>| {
            value.unwrap_or_else(|| {
                missing.push(name);
                String::new()
            })
        };
        let region = read("AWS_REGION").or_else(|| read("AWS_DEFAULT_REGION"));
        let region = need("AWS_REGION", region);
        let key_id = need("AWS_ACCESS_KEY_ID", read("AWS_ACCESS_KEY_ID"));
        let secret = need("AWS_SECRET_ACCESS_KEY", read("AWS_SECRET_ACCESS_KEY"));
        if !missing.is_empty() {
            return Err(AwsConfigError { missing });
        }
        let token = read("AWS_SESSION_TOKEN");
        let credentials = Credentials::new(key_id, secret, token, None, "environment");
        let mut config = SdkConfig::builder()
            // Dated: defaults that a later version changes do not change here unseen.
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new(region))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(Connections::new())
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
            .timeout_config(timeouts(ATTEMPT_TIMEOUT, CALL_TIMEOUT));
        config.set_endpoint_url(read("AWS_ENDPOINT_URL"));
        Ok(Self {
            config: config.build(),
        })
    }

    /// The same, with each call tried once: for calls that the caller repeats by a
    /// schedule of its own, and gives a time each.
    #[must_use]
    pub(crate) fn tried_once(&self) -> Self {
        let config = self.config.to_builder();
        Self {
            config: config.retry_config(RetryConfig::disabled()).build(),
        }
    }

    /// The same, for calls in another region. An emulator has all of them.
    #[must_use]
    pub(crate) fn in_region(&self, region: &str) -> Self {
        let region = Region::new(region.to_owned());
        Self {
            config: self.config.to_builder().region(region).build(),
        }
    }

    /// What a client of any service of AWS is made from.
    #[must_use]
    pub const fn config(&self) -> &SdkConfig {
        &self.config
    }
}

/// Limits of time for one call, by themselves or in place of the client's.
pub(crate) fn timeouts(attempt: Duration, call: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_attempt_timeout(attempt)
        .operation_timeout(call)
        .build()
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws")
            .field("region", &self.config.region())
            .field("endpoint_url", &self.config.endpoint_url())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Aws, AwsConfigError> {
        Aws::read(|name| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let error = read(&[("AWS_REGION", "")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "AWS cannot be called: AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY not set"
        );
    }

    #[test]
    fn no_credential_shows_in_debug() {
        let aws = read(&[
            ("AWS_DEFAULT_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "CANARY1"),
            ("AWS_SECRET_ACCESS_KEY", "CANARY2"),
            ("AWS_SESSION_TOKEN", "CANARY3"),
        ])
        .unwrap();
        let shown = format!("{aws:?} {:?}", aws.config());
        assert!(shown.contains("eu-west-1"));
        assert!(!shown.contains("CANARY2") && !shown.contains("CANARY3"));
    }
}
