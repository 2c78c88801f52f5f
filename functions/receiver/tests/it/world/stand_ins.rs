//! The clock and the secrets that a test sets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hookstead_receiver::Clock;
use hookstead_secrets::{FetchError, FetchFuture, SecretProvider, SecretVersion, VersionLabel};
use hookstead_signing::Secret;
use time::OffsetDateTime;

type Versions = Vec<(VersionLabel, String)>;

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<OffsetDateTime>>);

impl TestClock {
    pub(super) fn new(unix_s: i64) -> Self {
        let now = OffsetDateTime::from_unix_timestamp(unix_s).unwrap();
        Self(Arc::new(Mutex::new(now)))
    }

    pub(crate) fn now_s(&self) -> i64 {
        self.0.lock().unwrap().unix_timestamp()
    }

    pub(crate) fn advance_s(&self, seconds: i64) {
        *self.0.lock().unwrap() += time::Duration::seconds(seconds);
    }

    pub(crate) fn clock(&self) -> Clock {
        let clock = self.clone();
        Clock::from_fn(move || *clock.0.lock().unwrap())
    }
}

/// Secrets by reference, and how often they were read.
#[derive(Clone, Default)]
pub(crate) struct TestSecrets {
    versions: Arc<Mutex<HashMap<String, Versions>>>,
    down: Arc<Mutex<bool>>,
    fetches: Arc<AtomicUsize>,
}

impl TestSecrets {
    pub(crate) fn set(&self, reference: &str, versions: &[(VersionLabel, &str)]) {
        let versions = versions
            .iter()
            .map(|(l, s)| (*l, (*s).to_owned()))
            .collect();
        self.versions
            .lock()
            .unwrap()
            .insert(reference.to_owned(), versions);
    }

    pub(crate) fn set_down(&self, down: bool) {
        *self.down.lock().unwrap() = down;
    }

    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

impl SecretProvider for TestSecrets {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let found = self.versions.lock().unwrap().get(reference).cloned();
        let down = *self.down.lock().unwrap();
        let reference = reference.to_owned();
        Box::pin(async move {
            if down {
                return Err(FetchError::Unavailable {
                    reference,
                    source: "connection refused".into(),
                });
            }
            let Some(found) = found else {
                return Err(FetchError::NotFound { reference });
            };
            let parse = |(label, text): (VersionLabel, String)| {
                let secret = Secret::new(text).map_err(|source| FetchError::Unusable {
                    reference: reference.clone(),
                    label,
                    source,
                })?;
                Ok(SecretVersion {
                    label,
                    secret,
                    not_after: None,
                })
            };
            found.into_iter().map(parse).collect()
        })
    }
}
