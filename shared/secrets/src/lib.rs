//! Where the secrets of sources come from.
//!
//! [`SecretProvider`] is the port: it gives every version of a secret that may
//! verify a request now. [`SecretCache`] stands in front of one, so that a
//! request costs no look-up, a burst costs one, and a storm of bad signatures
//! costs a bounded number. [`LocalSecrets`] reads files and environment
//! variables; it serves one machine.

mod cache;
mod local;
mod provider;

pub use cache::{CacheLimits, SecretCache};
pub use local::LocalSecrets;
pub use provider::{
    FetchError, FetchFuture, OfferFuture, Offered, SecretProvider, SecretVersion, VersionLabel,
};
