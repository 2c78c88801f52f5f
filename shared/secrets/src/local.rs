//! Secrets from files and environment variables, for one machine.

use std::path::{Path, PathBuf};

use hookstead_signing::Secret;
use tokio::io::AsyncWriteExt;

use crate::provider::{
    FetchError, FetchFuture, OfferFuture, Offered, SecretProvider, SecretVersion, VersionLabel,
};

/// Reads `env:NAME` from the environment and `file:PATH` from a file.
///
/// The current version stands under the name or path itself. A pending version,
/// if any, stands in `NAME_PENDING` or `PATH.pending`, a previous one in
/// `NAME_PREVIOUS` or `PATH.previous`. A relative path starts at the base
/// folder. One line end at the end of a file is not part of the secret.
pub struct LocalSecrets {
    base: PathBuf,
}

const VERSIONS: [(VersionLabel, &str, &str); 3] = [
    (VersionLabel::Current, "", ""),
    (VersionLabel::Pending, "_PENDING", ".pending"),
    (VersionLabel::Previous, "_PREVIOUS", ".previous"),
];

impl LocalSecrets {
    /// Relative paths start at `base`.
    #[must_use]
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    async fn read_all(&self, reference: &str) -> Result<Vec<SecretVersion>, FetchError> {
        let mut versions = Vec::new();
        for (label, env_suffix, file_suffix) in VERSIONS {
            let text = if let Some(name) = reference.strip_prefix("env:") {
                read_env(reference, &format!("{name}{env_suffix}"))?
            } else if let Some(path) = reference.strip_prefix("file:") {
                read_file(reference, &self.base.join(format!("{path}{file_suffix}"))).await?
            } else {
                return Err(FetchError::UnknownReference);
            };
            match text {
                Some(text) => versions.push(version(reference, label, text)?),
                None if label == VersionLabel::Current => {
                    return Err(FetchError::NotFound {
                        reference: reference.to_owned(),
                    });
                }
                None => {}
            }
        }
        Ok(versions)
    }
}

impl SecretProvider for LocalSecrets {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        Box::pin(self.read_all(reference))
    }

    fn offer<'a>(&'a self, reference: &'a str, secret: &'a Secret) -> OfferFuture<'a> {
        Box::pin(async move {
            let Some(path) = reference.strip_prefix("file:") else {
                return Ok(Offered::NotSupported);
            };
            match write_new(&self.base.join(path), secret).await {
                Ok(()) => Ok(Offered::Kept),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    Ok(Offered::AlreadySet)
                }
                Err(error) => Err(FetchError::Unavailable {
                    reference: reference.to_owned(),
                    source: Box::new(error),
                }),
            }
        })
    }
}

/// Writes a file that only its owner can read. Two offers at once: one wins.
async fn write_new(path: &Path, secret: &Secret) -> std::io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await?;
    file.write_all(secret.expose().as_bytes()).await?;
    file.sync_all().await
}

fn version(
    reference: &str,
    label: VersionLabel,
    text: String,
) -> Result<SecretVersion, FetchError> {
    let secret = Secret::new(text).map_err(|source| FetchError::Unusable {
        reference: reference.to_owned(),
        label,
        source,
    })?;
    Ok(SecretVersion {
        label,
        secret,
        not_after: None,
    })
}

fn read_env(reference: &str, name: &str) -> Result<Option<String>, FetchError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        // The error's own text quotes the value, so it must not travel on.
        Err(std::env::VarError::NotUnicode(_)) => Err(FetchError::Unavailable {
            reference: reference.to_owned(),
            source: "the variable is not UTF-8".into(),
        }),
    }
}

async fn read_file(reference: &str, path: &Path) -> Result<Option<String>, FetchError> {
    match tokio::fs::read_to_string(path).await {
        Ok(mut text) => {
            if text.ends_with('\n') {
                text.pop();
                if text.ends_with('\r') {
                    text.pop();
                }
            }
            Ok(Some(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FetchError::Unavailable {
            reference: reference.to_owned(),
            source: Box::new(error),
        }),
    }
}
