//! Numbers that look random and are the same for the same seed.

/// A generator: splitmix64. What the system makes of the numbers depends on its own
/// timing, so a seed repeats a plan, not a run.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` up to, and without, `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low)
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.number().is_multiple_of(times)
    }

    /// One of the places of a list of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.between(0, u64::try_from(length).unwrap())).unwrap()
    }
}
