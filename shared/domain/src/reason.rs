//! Reasons that stand beside a delivery's state.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Longest code, as the database has it.
const MAX_LEN: usize = 64;

/// A reason as a code: 1 to 64 of `a`–`z`, `0`–`9` and `_`, starting with a
/// letter. Handlers choose theirs; it is a word for people to group by, not text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReasonCode(Cow<'static, str>);

/// A text that cannot be a reason's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reason is 1 to 64 of a-z, 0-9 and '_', and starts with a letter")]
pub struct InvalidReasonCode;

impl ReasonCode {
    /// The consumer answered that the event is of no use to it any more.
    pub const CONSUMER_SKIPPED: Self = Self(Cow::Borrowed("consumer_skipped"));
    /// The consumer answered that it wants the event later.
    pub const CONSUMER_DEFERRED: Self = Self(Cow::Borrowed("consumer_deferred"));
    /// The worker shut down before the attempt was over. Not a failure.
    pub const WORKER_STOPPED: Self = Self(Cow::Borrowed("worker_stopped"));

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReasonCode {
    type Err = InvalidReasonCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letters = text.starts_with(|first: char| first.is_ascii_lowercase())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if letters && text.len() <= MAX_LEN {
            Ok(Self(Cow::Owned(text.to_owned())))
        } else {
            Err(InvalidReasonCode)
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! reasons {
    ($(#[$about:meta])* $name:ident { $($variant:ident $code:literal $doc:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $doc] $variant,)+
        }

        impl $name {
            /// Every reason, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code, as stored beside the state.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What it means, for the reference page.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc,)+ }
            }

            /// The reason of this code.
            #[must_use]
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == code)
            }
        }
    };
}

reasons! {
    /// Why a delivery became a dead letter.
    DeadLetterReason {
        PermanentFailure "permanent_failure" "An attempt failed in a way that trying again cannot help.",
        Gone "gone" "The destination answered 410, which also disables its subscription.",
        BudgetSpent "budget_spent" "The last attempt of the budget failed.",
        MaxAge "max_age" "The next attempt would have come after the policy's `max_age_s`.",
        IdenticalAnswers "identical_answers" "As many equal refusals in a row as the policy's `give_up_after_identical`.",
        WorkerLost "worker_lost" "Leases of this round ran out too often, or with the last attempt of the budget.",
        DeferredTooLong "deferred_too_long" "The consumer deferred it beyond the limit.",
    }
}

reasons! {
    /// Why a delivery was cancelled.
    CancelReason {
        SubscriptionDisabled "subscription_disabled" "The subscription was switched off.",
        SubscriptionDeleted "subscription_deleted" "The subscription is no more.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_word_in_small_letters() {
        for good in ["a", "stale", "version_2", &"x".repeat(64)] {
            assert_eq!(good.parse::<ReasonCode>().unwrap().as_str(), good);
        }
        for bad in ["", "_a", "2a", "Stale", "a b", "a-b", "é", &"x".repeat(65)] {
            assert_eq!(bad.parse::<ReasonCode>(), Err(InvalidReasonCode), "{bad}");
        }
    }

    #[test]
    fn our_own_reasons_are_codes_of_that_shape() {
        let dead = DeadLetterReason::ALL.iter().map(|reason| reason.as_str());
        let cancelled = CancelReason::ALL.iter().map(|reason| reason.as_str());
        let waiting = [
            ReasonCode::CONSUMER_SKIPPED,
            ReasonCode::CONSUMER_DEFERRED,
            ReasonCode::WORKER_STOPPED,
        ];
        for code in dead
            .chain(cancelled)
            .chain(waiting.iter().map(ReasonCode::as_str))
        {
            assert!(code.parse::<ReasonCode>().is_ok(), "{code}");
        }
        for reason in DeadLetterReason::ALL {
            assert_eq!(DeadLetterReason::from_code(reason.as_str()), Some(*reason));
        }
        assert_eq!(CancelReason::from_code("no_such_reason"), None);
    }
}
