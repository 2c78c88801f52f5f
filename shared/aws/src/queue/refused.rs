//! Why a queue did not do what it was asked. Messages are never quoted.

use crate::Cause;

/// Why one message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendRefused {
    /// It may be taken when it is sent again.
    #[error("the queue did not take the message: {code}")]
    Transient {
        /// The queue's own code for the reason, or one of ours in snake_case.
        code: String,
        /// What lies below, where a whole call failed.
        #[source]
        cause: Option<Cause>,
    },
    /// It will never be taken as it is.
    #[error("the queue refuses the message: {code}")]
    Permanent {
        /// The queue's own code for the reason, or one of ours in snake_case.
        code: String,
        /// What lies below, where a whole call failed.
        #[source]
        cause: Option<Cause>,
    },
}

impl SendRefused {
    /// One that sending again may help.
    pub(crate) fn transient(code: &str) -> Self {
        Self::Transient {
            code: code.to_owned(),
            cause: None,
        }
    }

    /// One that sending again cannot help.
    pub(crate) fn permanent(code: &str) -> Self {
        Self::Permanent {
            code: code.to_owned(),
            cause: None,
        }
    }

    /// Whether sending the same message again may help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// The reason, as a code.
    #[must_use]
    pub fn code(&self) -> &str {
        let (Self::Transient { code, .. } | Self::Permanent { code, .. }) = self;
        code
    }
}

/// Why a queue could not be asked, read, emptied or moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// It may pass by itself.
    #[error("the queue is not available: {code}")]
    Transient {
        /// The queue's own code for the reason, or one of ours in snake_case.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
    /// Somebody has to change something: the queue is missing, say, or forbidden.
    #[error("the queue refuses: {code}")]
    Permanent {
        /// The queue's own code for the reason, or one of ours in snake_case.
        code: String,
        /// What lies below.
        #[source]
        cause: Option<Cause>,
    },
}

impl QueueError {
    /// Whether the same call may work later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// The reason, as a code.
    #[must_use]
    pub fn code(&self) -> &str {
        let (Self::Transient { code, .. } | Self::Permanent { code, .. }) = self;
        code
    }
}

impl From<QueueError> for SendRefused {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Transient { code, cause } => Self::Transient { code, cause },
            QueueError::Permanent { code, cause } => Self::Permanent { code, cause },
        }
    }
}
