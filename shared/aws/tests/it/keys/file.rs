//! The file of keys.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

use hookstead_aws::keys::{DataKey, DataKeys, KeyError, KeyFile, KeyFuture, PlainKey, Sealed};
use tempfile::TempDir;

use super::conformance::{Subject, conformance};

struct File;

/// A key file with the folder it is in.
#[derive(Clone)]
struct InFolder {
    file: KeyFile,
    folder: Arc<TempDir>,
}

impl InFolder {
    fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let file = KeyFile::new(folder.path().join("keys/hookstead.keys"));
        Self { file, folder }
    }
}

impl DataKeys for InFolder {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        self.file.generate()
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey> {
        self.file.unwrap_key(wrapped, key_id)
    }
}

impl Subject for File {
    type Keys = InFolder;

    async fn keys(&self) -> InFolder {
        InFolder::new()
    }

    async fn rotated(&self, keys: &InFolder) -> InFolder {
        keys.file.rotate().unwrap();
        keys.clone()
    }

    async fn without_key(&self, keys: &InFolder, sealed: Sealed) -> Sealed {
        std::fs::remove_file(keys.file.path()).unwrap();
        sealed
    }

    fn again(&self, keys: &InFolder) -> InFolder {
        keys.clone()
    }
}

conformance!(File);

#[test]
fn the_file_is_made_once_for_its_owner_alone() {
    let keys = InFolder::new();
    let id = keys.file.create_if_missing().unwrap();
    let found = std::fs::metadata(keys.file.path()).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let parent = std::fs::metadata(keys.folder.path().join("keys")).unwrap();
    assert_eq!(parent.permissions().mode() & 0o777, 0o700);
    assert_eq!(keys.file.create_if_missing().unwrap(), id);
    let again = std::fs::metadata(keys.file.path()).unwrap();
    assert_eq!(found.ino(), again.ino());
}

#[test]
fn many_that_make_the_file_at_once_agree_on_its_key() {
    let keys = InFolder::new();
    let makers: Vec<_> = (0..8)
        .map(|_| {
            let file = keys.file.clone();
            std::thread::spawn(move || file.create_if_missing().unwrap())
        })
        .collect();
    let ids: Vec<String> = makers.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn rotations_at_once_lose_no_key() {
    let keys = InFolder::new();
    let old = keys.generate().await.unwrap();
    let rotating: Vec<_> = (0..8)
        .map(|_| {
            let file = keys.file.clone();
            std::thread::spawn(move || file.rotate().unwrap())
        })
        .collect();
    for one in rotating {
        one.join().unwrap();
    }
    let text = std::fs::read_to_string(keys.file.path()).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#')).count(),
        9
    );
    keys.unwrap_key(&old.wrapped, &old.key_id).await.unwrap();
}

#[tokio::test]
async fn a_file_that_others_may_read_is_refused() {
    let keys = InFolder::new();
    keys.file.create_if_missing().unwrap();
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(keys.file.path(), open).unwrap();
    let error = keys.generate().await.unwrap_err();
    assert!(matches!(error, KeyError::Denied { .. }), "{error:?}");
    assert_eq!(error.code(), "key_file_open_to_others");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    let keys = InFolder::new();
    keys.file.create_if_missing().unwrap();
    let text = std::fs::read_to_string(keys.file.path()).unwrap();
    let damaged = text.replace('=', "");
    std::fs::write(keys.file.path(), &damaged).unwrap();
    for error in [
        keys.generate().await.unwrap_err(),
        keys.file.rotate().unwrap_err(),
    ] {
        assert_eq!(error.code(), "key_file_damaged");
    }
    assert_eq!(std::fs::read_to_string(keys.file.path()).unwrap(), damaged);
}

#[tokio::test]
async fn a_key_of_a_file_that_was_lost_is_missing_even_when_a_new_file_is_there() {
    let keys = InFolder::new();
    let lost = keys.generate().await.unwrap();
    std::fs::remove_file(keys.file.path()).unwrap();
    keys.file.create_if_missing().unwrap();
    let error = keys.unwrap_key(&lost.wrapped, &lost.key_id).await;
    assert_eq!(error.unwrap_err().code(), "key_not_in_file");
}
