//! Random numbers.

use hookstead_domain::Jitter;

/// `N` random bytes.
fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random numbers once it has started");
    bytes
}

/// Where in its range a wait falls.
pub(crate) fn jitter() -> Jitter {
    Jitter::from_random(u64::from_ne_bytes(bytes()))
}

/// A short word that no other process has.
pub(crate) fn word() -> String {
    hex::encode(bytes::<4>())
}
