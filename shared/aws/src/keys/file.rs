//! Keys in a local file, for one machine.

mod lines;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use self::lines::{Key, Keys};
use super::cipher::{self, NONCE_BYTES};
use super::{DataKey, DataKeys, KEY_BYTES, KeyError, KeyFuture, PlainKey};
use crate::Cause;

/// What is authenticated besides a data key, with the key's id.
const LABEL: &str = "hookstead data key ";

/// What key ids start with, so that a row says which kind of key it needs.
const ID_PREFIX: &str = "file:";

/// Keys in a file that only its owner may read: a line for each, of a name and 32 bytes
/// in base64. The last one wraps new data keys; the others unwrap what they wrapped.
///
/// The file is made, with one key, when a data key is first needed. It is read each time,
/// so a rotation by another process is seen; a [`super::Sealer`] asks seldom. Whoever loses the file
/// loses what was sealed.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The file at this path. Nothing is read or made yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, with one key, unless it is there; gives the id of the key in force.
    ///
    /// # Errors
    /// Where it cannot be made, or is there and cannot be used.
    pub fn create_if_missing(&self) -> Result<String, KeyError> {
        if let Some(keys) = self.read()? {
            return current(&keys).map(|key| id_of(&key.name));
        }
        let _lock = self.lock()?;
        // Another process may have made it while this one waited.
        match self.read()? {
            Some(keys) => current(&keys).map(|key| id_of(&key.name)),
            None => self.add(Keys::default()),
        }
    }

    /// Adds a new key, which wraps from now on, and gives its id. What is sealed stays
    /// readable. Data keys in memory are used until they are too old.
    ///
    /// # Errors
    /// Where the file cannot be read or written.
    pub fn rotate(&self) -> Result<String, KeyError> {
        let _lock = self.lock()?;
        let keys = self.read()?.unwrap_or_default();
        self.add(keys)
    }

    /// The keys; `None` where there is no file.
    fn read(&self) -> Result<Option<Keys>, KeyError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_failed(&error)),
        };
        let found = std::fs::metadata(&self.path).map_err(|error| io_failed(&error))?;
        if found.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Denied {
                code: "key_file_open_to_others".to_owned(),
                cause: None,
            });
        }
        let keys = Keys::parse(&text).ok_or_else(|| KeyError::refused("key_file_damaged"))?;
        Ok(Some(keys))
    }

    /// Held while the file is made or changed; released when dropped.
    fn lock(&self) -> Result<File, KeyError> {
        if let Some(parent) = self.path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| io_failed(&error))?;
        }
        let lock = private(OpenOptions::new().create(true), &self.beside("lock"));
        let lock = lock.map_err(|error| io_failed(&error))?;
        lock.lock().map_err(|error| io_failed(&error))?;
        Ok(lock)
    }

    /// Writes the keys and a new one. The file is replaced whole, so a crash leaves the
    /// old one or the new one.
    fn add(&self, mut keys: Keys) -> Result<String, KeyError> {
        let key = Key::random()?;
        let id = id_of(&key.name);
        keys.0.push(key);
        let partial = self.beside("new");
        let written = private(OpenOptions::new().create(true).truncate(true), &partial)
            .and_then(|mut file| {
                file.write_all(keys.text().as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&partial, &self.path));
        written.map_err(|error| io_failed(&error))?;
        Ok(id)
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(suffix);
        name.into()
    }

    fn generate_key(&self) -> Result<DataKey, KeyError> {
        self.create_if_missing()?;
        let keys = self.read()?.ok_or_else(|| missing("key_file_missing"))?;
        let key = current(&keys)?;
        let mut plain = Zeroizing::new([0; KEY_BYTES]);
        cipher::fill_random(&mut *plain)?;
        let key_id = id_of(&key.name);
        let nonce = cipher::nonce()?;
        let mut wrapped = nonce.to_vec();
        let label = format!("{LABEL}{key_id}");
        wrapped.extend(cipher::encrypt(&key.key, nonce, label.as_bytes(), &*plain));
        Ok(DataKey {
            plain: PlainKey::from_slice(&*plain).ok_or_else(|| KeyError::refused("key_length"))?,
            wrapped,
            key_id,
        })
    }

    fn decrypt_key(&self, wrapped: &[u8], key_id: &str) -> Result<PlainKey, KeyError> {
        let keys = self.read()?.ok_or_else(|| missing("key_file_missing"))?;
        let name = key_id.strip_prefix(ID_PREFIX);
        let mut known = keys.0.iter();
        let key = known
            .find(|key| Some(key.name.as_str()) == name)
            .ok_or_else(|| missing("key_not_in_file"))?;
        let not_wrapped = || KeyError::refused("not_wrapped_by_this_key");
        let (nonce, encrypted) = wrapped
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or_else(not_wrapped)?;
        let label = format!("{LABEL}{key_id}");
        let plain = cipher::decrypt(&key.key, *nonce, label.as_bytes(), encrypted);
        let plain = plain.map_err(|_| not_wrapped())?;
        PlainKey::from_slice(&plain).ok_or_else(not_wrapped)
    }
}

/// Opens a file that only its owner may read.
fn private(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    options.write(true).mode(0o600).open(path)
}

fn current(keys: &Keys) -> Result<&Key, KeyError> {
    keys.0.last().ok_or_else(|| missing("key_file_empty"))
}

fn id_of(name: &str) -> String {
    format!("{ID_PREFIX}{name}")
}

fn missing(code: &str) -> KeyError {
    KeyError::Missing {
        code: code.to_owned(),
        cause: None,
    }
}

fn io_failed(error: &std::io::Error) -> KeyError {
    let cause = Some(Cause::of(error));
    match error.kind() {
        ErrorKind::PermissionDenied => KeyError::Denied {
            code: "key_file_forbidden".to_owned(),
            cause,
        },
        ErrorKind::NotFound => KeyError::Missing {
            code: "key_file_missing".to_owned(),
            cause,
        },
        _ => KeyError::Unavailable {
            code: "key_file_unreadable".to_owned(),
            cause,
        },
    }
}

impl DataKeys for KeyFile {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        let file = self.clone();
        Box::pin(async move { blocking(move || file.generate_key()).await })
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey> {
        let (file, wrapped, key_id) = (self.clone(), wrapped.to_vec(), key_id.to_owned());
        Box::pin(async move { blocking(move || file.decrypt_key(&wrapped, &key_id)).await })
    }
}

/// Files are read on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(KeyError::Unavailable {
            code: "key_file_unreadable".to_owned(),
            cause: Some(Cause::of(&error)),
        })
    })
}
