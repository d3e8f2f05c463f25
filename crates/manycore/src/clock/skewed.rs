//! Simulated counters that differ from thread to thread, by more than the simulator's do.

use manycore_sim::{backend, thread};

use super::{Clock, Ordo};
use crate::sync::hint;

/// Counters of which each thread has its own, ahead of those of threads before it. For explored
/// schedules.
#[derive(Debug)]
pub struct Skewed(Ordo);

/// A few times as much as the clock goes forward each time that it is read, in ticks.
const SKEW: u64 = 3000;

/// The skew of the last of three threads.
const SKEW_MAX: u64 = 2 * SKEW;

impl Default for Skewed {
    fn default() -> Self {
        Self(Ordo::with_boundary(SKEW_MAX))
    }
}

impl Skewed {
    /// A clock that is wrong: its boundary says that its counters do not differ.
    #[must_use]
    pub fn wrong() -> Self {
        Self(Ordo::with_boundary(0))
    }

    /// None for a thread that cleans up after a simulation that has failed.
    fn skew() -> u64 {
        if backend::is_simulating() { u64::from(thread::id() % 3) * SKEW } else { 0 }
    }
}

// SAFETY: any two counters differ by the boundary at most; those of a `wrong` clock do not keep the
// promises, which costs snapshots of one moment and no memory (contract of `Clock`).
unsafe impl Clock for Skewed {
    fn present(&self) -> u64 {
        self.0.present() + Self::skew()
    }

    fn stamp(&self) -> u64 {
        self.0.stamp() + Self::skew()
    }

    fn fresh(&self) -> u64 {
        let fresh = self.present() + 2 * self.0.boundary() + 1;
        loop {
            let now = self.present();
            if now >= fresh {
                return now;
            }
            hint::pause();
        }
    }

    fn horizon(&self) -> u64 {
        self.present().saturating_sub(self.0.boundary())
    }

    fn pass(&self, stamp: u64) {
        while self.present() < stamp {
            hint::pause();
        }
    }
}
