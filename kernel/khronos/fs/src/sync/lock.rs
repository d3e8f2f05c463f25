//! Locks of chains; other threads can read their holders without a write.

use manycore::lock::{Adaptive, PlainLock};
use manycore::sync::atomic::{AtomicU64, Ordering};

/// A lock, and a count of its acquisitions and releases.
pub(crate) struct Lock {
    lock: Adaptive,
    turns: AtomicU64,
}

impl Lock {
    pub const fn new() -> Self {
        Self { lock: Adaptive::new(), turns: AtomicU64::new(0) }
    }

    pub fn acquire(&self) {
        self.lock.acquire();
        self.turn();
    }

    /// # Safety
    ///
    /// It was acquired, and is released once.
    pub unsafe fn release(&self) {
        self.turn();
        // SAFETY: the lock was acquired, and is released once (contract of this function).
        unsafe { self.lock.release() };
    }

    /// With the lock held.
    fn turn(&self) {
        // Relaxed: only holders write it. Release: partner of the Acquire in `turns`, for the
        // earlier holders' changes. A thread that sees a later change, which is stored by a
        // Release, sees this.
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Odd while a thread has it.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire) // Acquire: partner of the Release in `turn`
    }
}
