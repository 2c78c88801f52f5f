//! The cache over a provider whose answers and number of calls the test controls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hookstead_secrets::{
    CacheLimits, FetchError, FetchFuture, SecretCache, SecretProvider, SecretVersion, VersionLabel,
};
use hookstead_signing::Secret;
use time::{Duration, OffsetDateTime};
use tokio::sync::Semaphore;

/// What the provider answers next.
#[derive(Clone, Copy)]
enum Answer {
    Versions(usize),
    Gone,
    Unreachable,
}

struct Scripted {
    answer: Mutex<Answer>,
    calls: AtomicUsize,
    gate: Option<Semaphore>,
}

impl Scripted {
    fn new(answer: Answer) -> Self {
        Self {
            answer: Mutex::new(answer),
            calls: AtomicUsize::new(0),
            gate: None,
        }
    }

    fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl SecretProvider for Scripted {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
            let answer = *self.answer.lock().unwrap();
            match answer {
                Answer::Versions(count) => Ok((0..count)
                    .map(|n| SecretVersion {
                        label: VersionLabel::Current,
                        secret: Secret::new(format!("secret-{n}")).unwrap(),
                        not_after: None,
                    })
                    .collect()),
                Answer::Gone => Err(FetchError::NotFound {
                    reference: reference.to_owned(),
                }),
                Answer::Unreachable => Err(FetchError::Unavailable {
                    reference: reference.to_owned(),
                    source: "connection refused".into(),
                }),
            }
        })
    }
}

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::seconds(1_800_000_000 + seconds)
}

fn cache(provider: &'static Scripted) -> SecretCache<Shared> {
    SecretCache::new(Shared(provider), CacheLimits::default())
}

struct Shared(&'static Scripted);

impl SecretProvider for Shared {
    fn fetch<'a>(&'a self, reference: &'a str) -> FetchFuture<'a> {
        self.0.fetch(reference)
    }
}

fn scripted(answer: Answer) -> &'static Scripted {
    Box::leak(Box::new(Scripted::new(answer)))
}

#[tokio::test]
async fn a_fresh_secret_is_read_once() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    for second in [0, 1, 44] {
        assert_eq!(cache.get("a", at(second)).await.unwrap().len(), 1);
    }
    assert_eq!(provider.calls(), 1);
    cache.get("a", at(45)).await.unwrap();
    assert_eq!(provider.calls(), 2);
}

#[tokio::test]
async fn a_burst_waits_for_one_fetch() {
    let provider = Box::leak(Box::new(Scripted {
        gate: Some(Semaphore::new(0)),
        ..Scripted::new(Answer::Versions(1))
    }));
    let cache = cache(provider);
    let burst = futures::future::join_all((0..50).map(|_| cache.get("a", at(0))));
    let release = async { provider.gate.as_ref().unwrap().add_permits(50) };
    let (answers, ()) = tokio::join!(burst, release);
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(provider.calls(), 1);
}

#[tokio::test]
async fn a_mismatch_asks_again_at_most_once_in_thirty_seconds() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    cache.get("a", at(0)).await.unwrap();
    provider.set(Answer::Versions(2));
    assert!(cache.get_newer("a", at(29)).await.is_none());
    assert_eq!(cache.get_newer("a", at(30)).await.unwrap().len(), 2);
    for _ in 0..1000 {
        assert!(cache.get_newer("a", at(31)).await.is_none());
    }
    assert_eq!(provider.calls(), 2);
}

#[tokio::test]
async fn an_outage_is_ridden_out_on_what_was_known_for_ten_minutes() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    cache.get("a", at(0)).await.unwrap();
    provider.set(Answer::Unreachable);
    assert_eq!(cache.get("a", at(100)).await.unwrap().len(), 1);
    assert_eq!(cache.get("a", at(599)).await.unwrap().len(), 1);
    let error = cache.get("a", at(601)).await.unwrap_err();
    assert!(error.is_transient());
}

#[tokio::test]
async fn an_outage_is_asked_about_once_in_five_seconds() {
    let provider = scripted(Answer::Unreachable);
    let cache = cache(provider);
    for _ in 0..100 {
        assert!(cache.get("a", at(0)).await.is_err());
    }
    assert_eq!(provider.calls(), 1);
    provider.set(Answer::Versions(1));
    assert!(cache.get("a", at(4)).await.is_err());
    assert!(cache.get("a", at(5)).await.is_ok());
}

#[tokio::test]
async fn a_deleted_secret_is_not_used_any_longer() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    cache.get("a", at(0)).await.unwrap();
    provider.set(Answer::Gone);
    let error = cache.get("a", at(46)).await.unwrap_err();
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_clock_that_was_set_back_does_not_extend_a_secret() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    cache.get("a", at(1000)).await.unwrap();
    provider.set(Answer::Versions(2));
    assert_eq!(cache.get("a", at(0)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn references_are_independent() {
    let provider = scripted(Answer::Versions(1));
    let cache = cache(provider);
    cache.get("a", at(0)).await.unwrap();
    cache.get("b", at(0)).await.unwrap();
    assert_eq!(provider.calls(), 2);
}
