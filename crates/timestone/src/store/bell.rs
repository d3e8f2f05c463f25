//! Work that one thread leaves to another.

use std::time::Duration;

use manycore::sync::atomic::{AtomicBool, Ordering};
use parking_lot::{Condvar, Mutex, MutexGuard};

/// Wakes a thread that works in the background.
#[derive(Default)]
pub struct Bell {
    has_rung: AtomicBool,
    is_ended: AtomicBool,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// There is work. Cheap if that was said before.
    pub fn ring(&self) {
        // Relaxed, both: a thread that rings and finds that it has rung may be one window early,
        // and what it has left is found by the work after that.
        if !self.has_rung.load(Ordering::Relaxed) && !self.has_rung.swap(true, Ordering::Relaxed) {
            let _lock = self.lock.lock();
            self.rung.notify_one();
        }
    }

    /// There is no more work.
    pub fn end(&self) {
        // Relaxed: ordered by the lock.
        self.is_ended.store(true, Ordering::Relaxed);
        drop(self.lock.lock());
        self.rung.notify_one();
    }

    /// Works, a window after each time that it has rung, until it ends. `work` says whether it is
    /// done; if it is not, it is tried again after the window.
    pub fn answer(&self, window: Duration, mut work: impl FnMut() -> bool) {
        let mut lock = self.lock.lock();
        // Relaxed, throughout: ordered by the lock, or looked at again after the window.
        while !self.is_ended.load(Ordering::Relaxed) {
            if !self.has_rung.load(Ordering::Relaxed) {
                self.rung.wait(&mut lock);
                continue;
            }
            if !window.is_zero() {
                self.rung.wait_for(&mut lock, window);
            }
            self.has_rung.store(false, Ordering::Relaxed);
            let unlocked = || {
                if !work() {
                    self.has_rung.store(true, Ordering::Relaxed);
                }
            };
            MutexGuard::unlocked(&mut lock, unlocked);
        }
    }
}
