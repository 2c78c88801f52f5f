//! Handlers by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Handler;
use super::erased::ErasedHandler;

/// The handlers of a worker, by the names that subscriptions use for them.
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<String, Arc<dyn ErasedHandler>>);

/// Two handlers under one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a handler of the name {0:?} already")]
pub struct HandlerNameTaken(pub String);

impl Handlers {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These and one more.
    ///
    /// # Errors
    ///
    /// When there is one of that name.
    pub fn register(mut self, name: &str, handler: impl Handler) -> Result<Self, HandlerNameTaken> {
        if self.0.contains_key(name) {
            return Err(HandlerNameTaken(name.to_owned()));
        }
        self.0.insert(name.to_owned(), Arc::new(handler));
        Ok(self)
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<dyn ErasedHandler>> {
        self.0.get(name).cloned()
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
