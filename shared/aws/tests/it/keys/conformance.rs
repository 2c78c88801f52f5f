//! What every place of keys does, a file as well as KMS.

use hookstead_aws::keys::{DataKeys, KeyError, OpenError, Sealed, Sealer};
use hookstead_signing::Secret;

use super::subscription;

/// One adapter, with a way to make keys of it.
pub(super) trait Subject {
    type Keys: DataKeys + 'static;

    /// A place with a key of its own.
    async fn keys(&self) -> Self::Keys;

    /// The same place, with another key in force from now on.
    async fn rotated(&self, keys: &Self::Keys) -> Self::Keys;

    /// Takes the key away that sealed this; where a place cannot lose a key, gives the
    /// same value under the id of no key.
    async fn without_key(&self, keys: &Self::Keys, sealed: Sealed) -> Sealed;

    /// The same place, as another process sees it.
    fn again(&self, keys: &Self::Keys) -> Self::Keys;
}

/// The tests of the suite, over the subject that an expression gives.
macro_rules! conformance {
    ($subject:expr) => {
        $crate::keys::conformance::conformance!(@each $subject,
            a_data_key_is_random_and_unwraps_to_itself,
            a_data_key_unwraps_under_no_other_key,
            an_altered_wrapped_key_does_not_unwrap,
            what_an_older_key_wrapped_unwraps_after_a_rotation,
            a_key_that_is_gone_is_a_missing_key_and_nothing_transient,
            what_is_sealed_opens_in_another_process,
            the_same_secret_is_sealed_differently_each_time,
            what_is_sealed_for_one_subscription_opens_for_no_other,
            no_altered_byte_goes_unnoticed,
            no_part_of_a_sealed_secret_opens,
            no_key_and_no_secret_shows_in_debug,
        );
    };
    (@each $subject:expr, $($test:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::keys::conformance::$test(&$subject).await;
            }
        )+
    };
}
pub(crate) use conformance;

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

pub(super) async fn a_data_key_is_random_and_unwraps_to_itself(subject: &impl Subject) {
    let keys = subject.keys().await;
    let first = keys.generate().await.unwrap();
    let second = keys.generate().await.unwrap();
    assert_ne!(first.plain.bytes(), second.plain.bytes());
    assert_ne!(first.wrapped, second.wrapped);
    assert_eq!(first.key_id, second.key_id);
    let unwrapped = keys.unwrap_key(&first.wrapped, &first.key_id).await;
    assert_eq!(unwrapped.unwrap().bytes(), first.plain.bytes());
}

pub(super) async fn a_data_key_unwraps_under_no_other_key(subject: &impl Subject) {
    let keys = subject.keys().await;
    let old = keys.generate().await.unwrap();
    let rotated = subject.rotated(&keys).await;
    let new = rotated.generate().await.unwrap();
    let error = rotated.unwrap_key(&old.wrapped, &new.key_id).await;
    assert!(!error.unwrap_err().is_transient());
}

pub(super) async fn an_altered_wrapped_key_does_not_unwrap(subject: &impl Subject) {
    let keys = subject.keys().await;
    let key = keys.generate().await.unwrap();
    let mut altered = key.wrapped.clone();
    *altered.last_mut().unwrap() ^= 1;
    let error = keys.unwrap_key(&altered, &key.key_id).await.unwrap_err();
    assert!(matches!(error, KeyError::Refused { .. }), "{error:?}");
    assert!(!error.is_transient());
}

pub(super) async fn what_an_older_key_wrapped_unwraps_after_a_rotation(subject: &impl Subject) {
    let keys = subject.keys().await;
    let sealed = Sealer::new(subject.again(&keys))
        .seal(&secret(), subscription(1))
        .await
        .unwrap();
    let rotated = subject.rotated(&keys).await;
    let sealer = Sealer::new(rotated);
    let anew = sealer.seal(&secret(), subscription(1)).await.unwrap();
    assert_ne!(anew.key_id, sealed.key_id);
    for sealed in [sealed, anew] {
        let opened = sealer.open(&sealed, subscription(1)).await.unwrap();
        assert_eq!(opened.expose(), SECRET);
    }
}

pub(super) async fn a_key_that_is_gone_is_a_missing_key_and_nothing_transient(
    subject: &impl Subject,
) {
    let keys = subject.keys().await;
    let sealer = Sealer::new(subject.again(&keys));
    let sealed = sealer.seal(&secret(), subscription(1)).await.unwrap();
    let sealed = subject.without_key(&keys, sealed).await;
    let error = sealer.open(&sealed, subscription(1)).await.unwrap_err();
    let OpenError::Key(KeyError::Missing { .. }) = &error else {
        panic!("{error:?}");
    };
    assert!(!error.is_transient());
}

pub(super) async fn what_is_sealed_opens_in_another_process(subject: &impl Subject) {
    let keys = subject.keys().await;
    let sealer = Sealer::new(subject.again(&keys));
    let sealed = sealer.seal(&secret(), subscription(7)).await.unwrap();
    let other = Sealer::new(keys);
    let opened = other.open(&sealed, subscription(7)).await.unwrap();
    assert_eq!(opened.expose(), SECRET);
}

pub(super) async fn the_same_secret_is_sealed_differently_each_time(subject: &impl Subject) {
    let sealer = Sealer::new(subject.keys().await);
    let first = sealer.seal(&secret(), subscription(1)).await.unwrap();
    let second = sealer.seal(&secret(), subscription(1)).await.unwrap();
    assert_ne!(first.bytes, second.bytes);
    let holds = |sealed: &Sealed, part: &[u8]| sealed.bytes.windows(part.len()).any(|w| w == part);
    assert!(!holds(&first, b"whsec_") && !holds(&second, &SECRET.as_bytes()[6..20]));
}

pub(super) async fn what_is_sealed_for_one_subscription_opens_for_no_other(subject: &impl Subject) {
    let sealer = Sealer::new(subject.keys().await);
    let sealed = sealer.seal(&secret(), subscription(1)).await.unwrap();
    let error = sealer.open(&sealed, subscription(2)).await.unwrap_err();
    assert_eq!(error, OpenError::NotAuthentic);
}

pub(super) async fn no_altered_byte_goes_unnoticed(subject: &impl Subject) {
    let sealer = Sealer::new(subject.keys().await);
    let sealed = sealer.seal(&secret(), subscription(1)).await.unwrap();
    for place in 0..sealed.bytes.len() {
        for flip in [0x01, 0x80] {
            let mut altered = sealed.clone();
            altered.bytes[place] ^= flip;
            let opened = sealer.open(&altered, subscription(1)).await;
            let error = opened.expect_err("an altered byte went unnoticed");
            assert!(!error.is_transient(), "byte {place}: {error:?}");
        }
    }
    let mut altered = sealed.clone();
    altered.key_id.push('0');
    sealer.open(&altered, subscription(1)).await.unwrap_err();
    sealer.open(&sealed, subscription(1)).await.unwrap();
}

pub(super) async fn no_part_of_a_sealed_secret_opens(subject: &impl Subject) {
    let sealer = Sealer::new(subject.keys().await);
    let sealed = sealer.seal(&secret(), subscription(1)).await.unwrap();
    for length in 0..sealed.bytes.len() {
        let part = Sealed {
            bytes: sealed.bytes[..length].to_vec(),
            key_id: sealed.key_id.clone(),
        };
        let opened = sealer.open(&part, subscription(1)).await;
        opened.expect_err("a part opened");
    }
    let mut longer = sealed.clone();
    longer.bytes.push(0);
    let error = sealer.open(&longer, subscription(1)).await.unwrap_err();
    assert_eq!(error, OpenError::NotAuthentic);
}

pub(super) async fn no_key_and_no_secret_shows_in_debug(subject: &impl Subject) {
    let keys = subject.keys().await;
    let key = keys.generate().await.unwrap();
    assert!(format!("{key:?}").contains("PlainKey(redacted)"));
    let sealer = Sealer::new(keys);
    let sealed = sealer.seal(&secret(), subscription(1)).await.unwrap();
    assert!(!format!("{sealer:?} {sealed:?}").contains("whsec_"));
}
