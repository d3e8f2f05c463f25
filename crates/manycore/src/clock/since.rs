//! A clock that goes on where another has stopped.

use super::Clock;

/// A clock for objects that outlive the process: its times are later than those of an earlier run.
/// After a restart the processor's counter begins at 0, but the stamps on the disk do not.
#[derive(Debug, Default)]
pub struct Since<C> {
    clock: C,
    base: u64,
}

impl<C: Clock> Since<C> {
    /// Every time is later than `last`.
    pub fn new(clock: C, last: u64) -> Self {
        let now = clock.horizon();
        let base = if now > last { 0 } else { last - now + 1 };
        Self { clock, base }
    }
}

// SAFETY: times are those of the clock inside plus one constant, which is less than 2^62 if the
// earlier run's times were.
unsafe impl<C: Clock> Clock for Since<C> {
    #[inline]
    fn is_exact(&self) -> bool {
        self.clock.is_exact()
    }

    #[inline]
    fn present(&self) -> u64 {
        self.clock.present() + self.base
    }

    #[inline]
    fn stamp(&self) -> u64 {
        self.clock.stamp() + self.base
    }

    #[inline]
    fn fresh(&self) -> u64 {
        self.clock.fresh() + self.base
    }

    #[inline]
    fn horizon(&self) -> u64 {
        self.clock.horizon() + self.base
    }

    #[inline]
    fn settle(&self, stamp: u64) -> u64 {
        self.clock.settle(stamp.saturating_sub(self.base)) + self.base
    }

    #[inline]
    fn pass(&self, stamp: u64) {
        self.clock.pass(stamp.saturating_sub(self.base));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::Counter;

    #[test]
    fn every_time_is_later_than_the_last_of_the_life_before() {
        for last in [0, 1, 1000] {
            let clock = Since::new(Counter::default(), last);
            let before = clock.present();
            assert!(before > last || last == 0, "{before} after {last}");
            let stamp = clock.stamp();
            assert!(stamp > before && clock.horizon() >= stamp && clock.settle(stamp) >= stamp);
        }
        let later = Since::new(Since::new(Counter::default(), 500), 20);
        assert_eq!(later.base, 0, "the clock is ahead already");
    }
}
