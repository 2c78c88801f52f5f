//! Random numbers.

use hookstead_domain::{Jitter, LeaseId};
use uuid::Builder;

/// `N` random bytes.
fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random numbers once it has started");
    bytes
}

/// The token of a new lease.
pub(crate) fn lease_id() -> LeaseId {
    LeaseId::from_uuid(Builder::from_random_bytes(bytes()).into_uuid())
}

/// Where in its range a wait falls.
pub(crate) fn jitter() -> Jitter {
    Jitter::from_random(u64::from_ne_bytes(bytes()))
}

/// A short word that no other process has.
pub(crate) fn word() -> String {
    format!("{:08x}", u32::from_ne_bytes(bytes()))
}
