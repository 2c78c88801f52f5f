//! Why an attempt failed.
//!
//! A class is all that a status report says about a failure, so it is a closed
//! list. Codes are stable: one may be added, none changes its meaning.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

macro_rules! error_classes {
    ($($variant:ident $code:literal $kind:ident $doc:literal),+ $(,)?) => {
        /// Why an attempt failed. See [`ErrorClass::as_str`] for the codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorClass {
            $(#[doc = $doc] $variant,)+
        }

        impl ErrorClass {
            /// Every class, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable code, as stored and reported.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// What the class means, for the reference page.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc,)+ }
            }

            /// What becomes of the delivery.
            #[must_use]
            pub const fn kind(self) -> FailureKind {
                match self { $(Self::$variant => FailureKind::$kind,)+ }
            }
        }
    };
}

impl ErrorClass {
    /// Whether the failure says something about the destination. One that lies with us
    /// must neither pause a subscription nor switch it off.
    #[must_use]
    pub const fn counts_against_destination(self) -> bool {
        !matches!(
            self,
            Self::HandlerMissing
                | Self::SecretUnavailable
                | Self::EventMissing
                | Self::WorkerLost
                | Self::Internal
        )
    }
}

/// What a failure says about the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It may pass by itself: tried again for as long as the budget lasts.
    Transient,
    /// The destination understood and refused: tried again, but enough equal
    /// answers in a row end the delivery.
    Refusal,
    /// Trying again cannot help.
    Permanent,
}

error_classes! {
    DnsFailure "dns_failure" Transient "The host's name could not be resolved.",
    ConnectionRefused "connection_refused" Transient "The host refused the connection.",
    Unreachable "unreachable" Transient "There is no way to the host or its network.",
    ConnectionReset "connection_reset" Transient "The connection ended before the answer was complete.",
    Timeout "timeout" Transient "The attempt took longer than its timeout.",
    TlsCertificateExpired "tls_certificate_expired" Transient "The host's certificate is expired or not yet valid.",
    TlsWrongHost "tls_wrong_host" Transient "The host's certificate is for another name.",
    TlsUntrusted "tls_untrusted" Transient "The host's certificate is of no known authority, or otherwise unusable.",
    TlsHandshake "tls_handshake" Transient "TLS could not be agreed on.",
    TruncatedBody "truncated_body" Transient "The answer's body ended before its announced length.",
    InvalidResponse "invalid_response" Transient "The answer is not HTTP, or its status is not from 200 to 599.",
    RequestTimeout "request_timeout" Transient "The answer is 408.",
    TooEarly "too_early" Transient "The answer is 425.",
    RateLimited "rate_limited" Transient "The answer is 429.",
    ServerError "server_error" Transient "The answer is 500 to 599.",
    Redirect "redirect" Refusal "The answer is 300 to 399; redirects are not followed.",
    ClientError "client_error" Refusal "The answer is 400 to 499 and none of those with a class of their own.",
    Gone "gone" Permanent "The answer is 410: the subscription is disabled.",
    AddressNotAllowed "address_not_allowed" Refusal "The host's address is not one that may be called.",
    InvalidDestination "invalid_destination" Refusal "The destination as configured cannot be called.",
    TargetThrottled "target_throttled" Transient "The queue, bus or function takes no more at the moment.",
    TargetUnavailable "target_unavailable" Transient "The queue, bus or function could not be reached or failed.",
    TargetRefused "target_refused" Refusal "The queue, bus or function is missing, forbidden, or refuses the message.",
    HandlerRetry "handler_retry" Transient "The handler asked to be tried again.",
    HandlerFailed "handler_failed" Permanent "The handler says that trying again cannot help.",
    HandlerPanicked "handler_panicked" Transient "The handler panicked.",
    HandlerMissing "handler_missing" Refusal "This worker knows no handler of that name.",
    SecretUnavailable "secret_unavailable" Transient "The subscription's signing secret cannot be used at the moment.",
    EventMissing "event_missing" Permanent "The event is no longer stored.",
    WorkerLost "worker_lost" Transient "The worker did not finish before its lease ran out.",
    Internal "internal" Transient "A fault of our own.",
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is the code of no error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is the code of no error class")]
pub struct UnknownErrorClass;

impl FromStr for ErrorClass {
    type Err = UnknownErrorClass;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        let mut classes = Self::ALL.iter().copied();
        classes
            .find(|class| class.as_str() == code)
            .ok_or(UnknownErrorClass)
    }
}

impl Serialize for ErrorClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReasonCode;

    #[test]
    fn codes_are_distinct_and_the_database_takes_them() {
        for class in ErrorClass::ALL {
            let code = class.as_str();
            assert!(code.parse::<ReasonCode>().is_ok(), "{code}");
            assert_eq!(code.parse(), Ok(*class), "{code} is not its own");
        }
        assert_eq!(
            "no_such_class".parse::<ErrorClass>(),
            Err(UnknownErrorClass)
        );
    }

    #[test]
    fn what_lies_with_us_does_not_count_against_a_destination() {
        let ours: Vec<_> = ErrorClass::ALL
            .iter()
            .filter(|class| !class.counts_against_destination())
            .map(|class| class.as_str())
            .collect();
        let expected = [
            "handler_missing",
            "secret_unavailable",
            "event_missing",
            "worker_lost",
            "internal",
        ];
        assert_eq!(ours, expected);
    }

    #[test]
    fn out_09_each_network_error_has_its_own_class_and_is_tried_again() {
        for code in [
            "dns_failure",
            "connection_refused",
            "connection_reset",
            "tls_certificate_expired",
            "tls_wrong_host",
            "timeout",
            "truncated_body",
        ] {
            let class: ErrorClass = code.parse().unwrap();
            assert_eq!(class.kind(), FailureKind::Transient, "{code}");
        }
    }
}
