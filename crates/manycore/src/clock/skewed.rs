//! Simulated counters that differ from thread to thread, by more than the simulator's do.

use manycore_sim::{backend, thread};

use super::{Clock, Ordo};
use crate::sync::hint;

/// A clock with a counter for each thread; each counter is ahead of those of earlier threads. It is
/// for explored schedules.
#[derive(Debug)]
pub struct Skewed(Ordo);

/// A few times the amount by which each read advances the clock, in ticks.
const SKEW: u64 = 3000;

/// The skew of the last of three threads.
const SKEW_MAX: u64 = 2 * SKEW;

impl Default for Skewed {
    fn default() -> Self {
        Self(Ordo::with_boundary(SKEW_MAX))
    }
}

impl Skewed {
    /// A wrong clock: its boundary claims that its counters do not differ.
    #[must_use]
    pub fn wrong() -> Self {
        Self(Ordo::with_boundary(0))
    }

    /// The thread's skew; `None` for a thread that cleans up after a simulation that has failed.
    fn skew() -> u64 {
        if backend::is_simulating() { u64::from(thread::id() % 3) * SKEW } else { 0 }
    }
}

// SAFETY: any two counters differ by the boundary at most; the times of a `wrong` clock break the
// promises, so snapshots may not be of one moment; memory stays safe (contract of `Clock`).
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
