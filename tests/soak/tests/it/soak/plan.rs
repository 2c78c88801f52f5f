//! How large a run is.

use std::env::var;
use std::time::{SystemTime, UNIX_EPOCH};

/// Events of a run that nobody asked to be larger: one that fits in between other tests.
const FEW_EVENTS: u64 = 200;

/// From so many events on, leases run out by themselves, 16 s after their claim. In a
/// smaller run that would be nearly all of the time, so there the leases of a killed
/// worker are moved back to where they have run out.
const MANY_EVENTS: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) events: u64,
    pub(crate) seed: u64,
    /// Whether the leases of killed workers run out at once.
    pub(crate) leases_are_moved: bool,
}

impl Plan {
    /// `HOOKSTEAD_SOAK_EVENTS` and `HOOKSTEAD_SOAK_SEED`.
    pub(crate) fn from_environment() -> Self {
        let number = |name| var(name).ok().map(|text| text.parse().expect(name));
        let events = number("HOOKSTEAD_SOAK_EVENTS").unwrap_or(FEW_EVENTS);
        let by_the_clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos())
        };
        Self {
            events,
            seed: number("HOOKSTEAD_SOAK_SEED").unwrap_or_else(by_the_clock),
            leases_are_moved: events < MANY_EVENTS,
        }
    }
}
