//! What lies below an error of this crate, as text.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The chain of messages below an error. The SDK's own errors hold whole answers in
/// their `Debug`, so they are not kept: their messages are.
#[derive(Clone, PartialEq, Eq)]
pub struct Cause(Arc<str>);

impl Cause {
    /// The messages of an error and of all that lies below it.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut text = error.to_string();
        let mut below = error.source();
        while let Some(error) = below {
            let message = error.to_string();
            // Wrappers often repeat what they wrap.
            if !text.ends_with(&message) {
                text.push_str(": ");
                text.push_str(&message);
            }
            below = error.source();
        }
        Self(text.into())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cause({:?})", self.0)
    }
}

impl Error for Cause {}
