//! The port of keys.

use std::pin::Pin;
use std::sync::Arc;

use super::{DataKey, KeyError, PlainKey};

/// What every operation gives.
pub type KeyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, KeyError>> + Send + 'a>>;

/// A place that makes data keys and unwraps those that it made.
pub trait DataKeys: Send + Sync {
    /// Makes a new data key under the key in force.
    ///
    /// # Errors
    /// Where the key cannot be used.
    fn generate(&self) -> KeyFuture<'_, DataKey>;

    /// Unwraps a data key that the key of this id wrapped. That key may be an older one
    /// than the one in force; it is never another one than the one named.
    ///
    /// # Errors
    /// Where the key cannot be used, or did not wrap these bytes.
    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey>;
}

impl<K: DataKeys + ?Sized> DataKeys for Arc<K> {
    fn generate(&self) -> KeyFuture<'_, DataKey> {
        (**self).generate()
    }

    fn unwrap_key<'a>(&'a self, wrapped: &'a [u8], key_id: &'a str) -> KeyFuture<'a, PlainKey> {
        (**self).unwrap_key(wrapped, key_id)
    }
}
