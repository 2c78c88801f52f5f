//! Why a key or a sealed secret cannot be used. Nothing here holds a key or a secret.

use crate::Cause;

/// Why a key cannot be used. Codes are the service's own, or ours in snake_case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no such key, or it is disabled or about to be deleted.
    #[error("the key is gone or disabled: {code}")]
    Missing {
        /// The reason.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
    /// This process may not use the key.
    #[error("the key may not be used: {code}")]
    Denied {
        /// The reason.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
    /// The key's place takes no more at the moment.
    #[error("the key is asked for too often: {code}")]
    Throttled {
        /// The reason.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
    /// The key's place cannot be reached, or failed.
    #[error("the key cannot be reached: {code}")]
    Unavailable {
        /// The reason.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
    /// The bytes were not wrapped by this key, or are altered, or the key is of no use here.
    #[error("the key refuses: {code}")]
    Refused {
        /// The reason.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
}

impl KeyError {
    /// Whether trying again later can help without anybody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }

    /// The reason, as a code.
    #[must_use]
    pub fn code(&self) -> &str {
        let (Self::Missing { code, .. }
        | Self::Denied { code, .. }
        | Self::Throttled { code, .. }
        | Self::Unavailable { code, .. }
        | Self::Refused { code, .. }) = self;
        code
    }

    pub(super) fn refused(code: &str) -> Self {
        Self::Refused {
            code: code.to_owned(),
            cause: None,
        }
    }
}

/// Why a sealed secret does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The key cannot be used.
    #[error("the key of the sealed secret cannot be used")]
    Key(#[from] KeyError),
    /// The bytes are of no known format.
    #[error("the sealed secret is of no known format")]
    Format,
    /// Altered, or sealed for another subscription or under another key's id.
    #[error("the sealed secret is altered, or belongs to another subscription")]
    NotAuthentic,
}

impl OpenError {
    /// Whether trying again later can help without anybody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Key(error) if error.is_transient())
    }
}
