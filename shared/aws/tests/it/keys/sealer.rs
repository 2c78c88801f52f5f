//! How often a sealer asks for keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::join_all;
use hookstead_aws::keys::{
    DataKey, DataKeys, KEY_BYTES, KeyError, KeyFile, KeyFuture, MAX_KEY_AGE, MAX_KEY_USES,
    OpenError, PlainKey, Sealed, Sealer,
};
use hookstead_signing::Secret;
use tempfile::TempDir;

use super::subscription;

/// Keys of a file that count how often they are asked, and fail on demand.
struct Counting {
    file: KeyFile,
    _folder: TempDir,
    generated: AtomicU32,
    unwrapped: AtomicU32,
    failures: AtomicU32,
}

impl Counting {
    fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        Arc::new(Self {
            file: KeyFile::new(folder.path().join("keys")),
            _folder: folder,
            generated: AtomicU32::new(0),
            unwrapped: AtomicU32::new(0),
            failures: AtomicU32::new(0),
        })
    }

    fn counts(&self) -> (u32, u32) {
        let count = |counter: &AtomicU32| counter.load(Ordering::SeqCst);
        (count(&self.generated), count(&self.unwrapped))
    }

    fn fail(&self, times: u32) {
        self.failures.store(times, Ordering::SeqCst);
    }

    fn failing(&self) -> Option<KeyError> {
        let less = |left: u32| left.checked_sub(1);
        let failing = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        failing.ok().map(|_| KeyError::Throttled {
            code: "made_up".to_owned(),
            cause: None,
        })
    }
}

impl DataKeys for Counting {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        self.generated.fetch_add(1, Ordering::SeqCst);
        match self.failing() {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => self.file.generate(),
        }
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey> {
        self.unwrapped.fetch_add(1, Ordering::SeqCst);
        match self.failing() {
            Some(error) => Box::pin(std::future::ready(Err(error))),
            None => self.file.unwrap_key(wrapped, key_id),
        }
    }
}

async fn seal(sealer: &Sealer) -> Result<Sealed, KeyError> {
    let secret = Secret::new("whsec_made_up").unwrap();
    sealer.seal(&secret, subscription(1)).await
}

#[tokio::test]
async fn many_that_seal_or_open_at_once_ask_for_one_key() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    let sealed = join_all((0..20).map(|_| seal(&sealer))).await;
    assert_eq!(keys.counts(), (1, 0));
    let opened = sealed
        .iter()
        .map(|sealed| sealer.open(sealed.as_ref().unwrap(), subscription(1)));
    for opened in join_all(opened).await {
        assert_eq!(opened.unwrap().expose(), "whsec_made_up");
    }
    assert_eq!(keys.counts(), (1, 1));
}

#[tokio::test]
async fn a_data_key_seals_so_many_secrets_and_no_more() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    for _ in 0..MAX_KEY_USES {
        seal(&sealer).await.unwrap();
    }
    assert_eq!(keys.counts().0, 1);
    seal(&sealer).await.unwrap();
    assert_eq!(keys.counts().0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_data_key_stays_in_memory_for_so_long_and_no_longer() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    let sealed = seal(&sealer).await.unwrap();
    sealer.open(&sealed, subscription(1)).await.unwrap();
    tokio::time::advance(MAX_KEY_AGE - Duration::from_millis(1)).await;
    seal(&sealer).await.unwrap();
    sealer.open(&sealed, subscription(1)).await.unwrap();
    assert_eq!(keys.counts(), (1, 1));
    tokio::time::advance(Duration::from_millis(1)).await;
    seal(&sealer).await.unwrap();
    sealer.open(&sealed, subscription(1)).await.unwrap();
    assert_eq!(keys.counts(), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_storm_on_failing_keys_asks_once_a_second_and_recovers() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    let sealed = seal(&sealer).await.unwrap();
    keys.fail(1);
    let opened = join_all((0..50).map(|_| sealer.open(&sealed, subscription(1)))).await;
    for opened in opened {
        let error = opened.unwrap_err();
        assert!(error.is_transient());
        assert!(matches!(error, OpenError::Key(KeyError::Throttled { .. })));
    }
    assert_eq!(keys.counts(), (1, 1));
    tokio::time::advance(Duration::from_secs(1)).await;
    sealer.open(&sealed, subscription(1)).await.unwrap();
    assert_eq!(keys.counts(), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_failure_to_make_a_key_is_remembered_for_a_second() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    keys.fail(1);
    for sealed in join_all((0..10).map(|_| seal(&sealer))).await {
        assert!(sealed.unwrap_err().is_transient());
    }
    assert_eq!(keys.counts().0, 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    seal(&sealer).await.unwrap();
}

/// Keys that unwrap anything to the same key.
struct Careless;

impl DataKeys for Careless {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        Box::pin(std::future::ready(Ok(DataKey {
            plain: PlainKey::from_slice(&[7; KEY_BYTES]).unwrap(),
            wrapped: vec![1, 2, 3],
            key_id: "careless".to_owned(),
        })))
    }

    fn unwrap_key<'a>(&'a self, _: &'a [u8], _: &'a str) -> KeyFuture<'a, PlainKey> {
        Box::pin(std::future::ready(Ok(PlainKey::from_slice(
            &[7; KEY_BYTES],
        )
        .unwrap())))
    }
}

#[tokio::test]
async fn an_altered_wrapped_key_or_key_id_is_refused_whatever_the_keys_say_to_it() {
    let sealer = Sealer::new(Careless);
    let sealed = seal(&sealer).await.unwrap();
    sealer.open(&sealed, subscription(1)).await.unwrap();
    let mut other_bytes = sealed.clone();
    // The last byte of the wrapped key, after the version and the length.
    other_bytes.bytes[5] ^= 1;
    let mut other_id = sealed.clone();
    other_id.key_id = "other".to_owned();
    for altered in [other_bytes, other_id] {
        let error = sealer.open(&altered, subscription(1)).await.unwrap_err();
        assert_eq!(error, OpenError::NotAuthentic);
    }
}

#[tokio::test]
async fn what_is_of_no_known_format_is_refused_without_asking_for_a_key() {
    let keys = Counting::new();
    let sealer = Sealer::new(Arc::clone(&keys));
    let mut sealed = seal(&sealer).await.unwrap();
    sealed.bytes[0] = 2;
    let error = sealer.open(&sealed, subscription(1)).await.unwrap_err();
    assert_eq!(error, OpenError::Format);
    assert_eq!(keys.counts().1, 0);
}
