//! Secrets from files and variables.

use hookstead_secrets::{FetchError, LocalSecrets, Offered, SecretProvider, VersionLabel};
use hookstead_signing::Secret;

fn labels(versions: &[hookstead_secrets::SecretVersion]) -> Vec<VersionLabel> {
    versions.iter().map(|version| version.label).collect()
}

#[tokio::test]
async fn a_file_gives_the_current_version_and_its_neighbours_the_others() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("stripe"), "whsec_now\n").unwrap();
    let secrets = LocalSecrets::new(dir.path());
    let versions = secrets.fetch("file:stripe").await.unwrap();
    assert_eq!(labels(&versions), [VersionLabel::Current]);

    std::fs::write(dir.path().join("stripe.pending"), "whsec_next").unwrap();
    std::fs::write(dir.path().join("stripe.previous"), "whsec_last\r\n").unwrap();
    let versions = secrets.fetch("file:stripe").await.unwrap();
    assert_eq!(
        labels(&versions),
        [
            VersionLabel::Current,
            VersionLabel::Pending,
            VersionLabel::Previous
        ]
    );
}

#[tokio::test]
async fn rec_05_a_blank_file_is_refused_by_name_and_never_used() {
    let dir = tempfile::tempdir().unwrap();
    let secrets = LocalSecrets::new(dir.path());
    for blank in ["", "\n", "  \n"] {
        std::fs::write(dir.path().join("empty"), blank).unwrap();
        let error = secrets.fetch("file:empty").await.unwrap_err();
        assert!(matches!(error, FetchError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains("file:empty"));
    }
}

#[tokio::test]
async fn a_missing_secret_is_named_and_permanent() {
    let dir = tempfile::tempdir().unwrap();
    let secrets = LocalSecrets::new(dir.path());
    for reference in ["file:nowhere", "env:HOOKSTEAD_TEST_SURELY_UNSET"] {
        let error = secrets.fetch(reference).await.unwrap_err();
        assert!(matches!(error, FetchError::NotFound { .. }));
        assert!(!error.is_transient());
        assert!(error.to_string().contains(reference));
    }
}

#[tokio::test]
async fn a_reference_of_another_form_is_refused_and_not_quoted() {
    let secrets = LocalSecrets::new(".");
    let error = secrets.fetch("whsec_pasted_by_mistake").await.unwrap_err();
    assert!(matches!(error, FetchError::UnknownReference));
    assert!(!error.to_string().contains("whsec"));
}

#[tokio::test]
async fn an_unreadable_file_is_transient_and_quotes_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
    let secrets = LocalSecrets::new(dir.path());
    let error = secrets.fetch("file:binary").await.unwrap_err();
    assert!(error.is_transient());
}

#[tokio::test]
async fn nothing_prints_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s"), "CANARY-SECRET").unwrap();
    let versions = LocalSecrets::new(dir.path()).fetch("file:s").await.unwrap();
    assert!(!format!("{versions:?}").contains("CANARY"));
}

#[tokio::test]
async fn an_offered_secret_is_kept_once_and_never_replaces_another() {
    let dir = tempfile::tempdir().unwrap();
    let secrets = LocalSecrets::new(dir.path());
    let first = Secret::new("chosen-by-the-provider").unwrap();
    let second = Secret::new("chosen-by-somebody-else").unwrap();
    assert_eq!(
        secrets.offer("file:s", &first).await.unwrap(),
        Offered::Kept
    );
    assert_eq!(
        secrets.offer("file:s", &second).await.unwrap(),
        Offered::AlreadySet
    );
    assert_eq!(
        secrets.offer("env:X", &first).await.unwrap(),
        Offered::NotSupported
    );
    let kept = secrets.fetch("file:s").await.unwrap();
    assert_eq!(kept[0].secret.expose(), "chosen-by-the-provider");
}

#[cfg(unix)]
#[tokio::test]
async fn an_offered_secret_can_be_read_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let secret = Secret::new("x-secret").unwrap();
    LocalSecrets::new(dir.path())
        .offer("file:s", &secret)
        .await
        .unwrap();
    let mode = std::fs::metadata(dir.path().join("s"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
