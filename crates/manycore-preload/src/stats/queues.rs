//! The number of threads that wait for a lock now, and the longest queue so far.

use core::sync::atomic::{AtomicU64, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore_stats::{Record, queue};

/// Protects the note of a lock's longest queue, which is rarely changed.
static LONGEST: Futex = Futex::new();

// Relaxed throughout: the word contains the whole state of a queue, and `LONGEST` orders the rest.

/// Notes that a thread starts to wait. Returns whether it is counted.
pub fn join(record: &Record, ticks: u64) -> bool {
    let joined = |word| queue::joined(word, ticks);
    record.queue.fetch_update(Ordering::Relaxed, Ordering::Relaxed, joined).is_ok()
}

/// A thread that was counted has ended its wait.
pub fn leave(record: &Record, ticks: u64) {
    let word = record.queue.fetch_sub(1, Ordering::Relaxed);
    if queue::now(word) == 1 && queue::most(word) > 1 {
        over(record, queue::lasted(word, ticks), ticks, queue::most(word));
    }
}

/// A queue of several threads is over.
fn over(record: &Record, lasted: u64, ticks: u64, most: u64) {
    let longest = |length: &AtomicU64| length.load(Ordering::Relaxed);
    if lasted <= longest(&record.convoy) {
        return;
    }
    LONGEST.acquire();
    if lasted > longest(&record.convoy) {
        record.convoy.store(lasted, Ordering::Relaxed);
        record.convoy_end.store(ticks, Ordering::Relaxed);
        record.convoy_most.store(most, Ordering::Relaxed);
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { LONGEST.release() };
}

/// Called in the child of a fork, where no other thread exists that could hold the lock.
pub fn forked() {
    crate::own_lock::set_free(&LONGEST);
}
