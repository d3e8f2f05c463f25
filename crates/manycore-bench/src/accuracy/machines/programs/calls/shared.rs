//! The interface of the data that a kernel's calls share.

use manycore_simulated::sync::atomic::{AtomicU64, Ordering};
use manycore_simulated::sync::hint;

/// A thread's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    OpenAndClose,
    Stat,
    Link,
    Semaphore,
    StatName,
    Map,
}

/// The data that a kernel's calls share. `work` computes that part of a call.
pub(super) trait Shared {
    /// Whether this call is implemented.
    fn knows(&self, part: Part) -> bool;

    fn open_and_close(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn stat(&self, _links: bool, _work: &dyn Fn(f64)) {}

    fn link(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn semop(&self, _thread: u32, _work: &dyn Fn(f64)) {}

    fn stat_name(&self, _work: &dyn Fn(f64)) {}

    /// Maps memory, touches it and unmaps it; returns how many pages the thread has touched. Waits
    /// for other threads until `_end` at most.
    fn map_and_unmap(&self, _thread: u32, _end: u64, _work: &dyn Fn(f64)) -> u64 {
        0
    }

    /// Checks that the state after the end of all threads is that of before.
    fn verify(&self) -> Result<(), String>;
}

/// A ticket lock, as spin locks of Linux were until 2015.
#[derive(Default)]
pub(super) struct TicketLock {
    drawn: AtomicU64,
    served: AtomicU64,
}

impl TicketLock {
    /// Runs a section with the lock held.
    pub fn locked<R>(&self, section: impl FnOnce() -> R) -> R {
        // Acquire: partner of the Release below.
        let mine = self.drawn.fetch_add(1, Ordering::Acquire);
        while self.served.load(Ordering::Acquire) != mine {
            hint::spin_loop();
        }
        let result = section();
        // Release: partner of the Acquires above.
        self.served.store(mine + 1, Ordering::Release);
        result
    }
}

/// Changes a count by compare-and-swap, until it works.
pub(super) fn count_by_swap(count: &AtomicU64, by: i64) {
    // Relaxed: a count.
    let mut seen = count.load(Ordering::Relaxed);
    while let Err(now) = count.compare_exchange(
        seen,
        seen.wrapping_add_signed(by),
        Ordering::Relaxed,
        Ordering::Relaxed,
    ) {
        seen = now;
    }
}
