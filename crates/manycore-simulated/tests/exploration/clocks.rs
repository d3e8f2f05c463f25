//! Clocks that differ from thread to thread, by more than the simulator's do.

use manycore_sim::{backend, thread};
use manycore_simulated::clock::{Clock, Ordo};
use manycore_simulated::sync::hint;

/// Counters of which each thread has its own, ahead of those of threads before it.
pub struct Skewed(Ordo);

/// A few times as much as the clock goes forward each time that it is read.
const SKEW: u64 = 3000;

impl Skewed {
    pub fn new() -> Self {
        // That is the largest skew.
        Self(Ordo::with_boundary(2 * SKEW))
    }

    /// A clock that is wrong: its boundary says that its counters do not differ.
    pub fn wrong() -> Self {
        Self(Ordo::with_boundary(0))
    }

    /// None for a thread that cleans up after a simulation that has failed.
    fn skew() -> u64 {
        if backend::is_simulating() { u64::from(thread::id() % 3) * SKEW } else { 0 }
    }
}

// SAFETY: any two counters differ by the boundary at most.
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
