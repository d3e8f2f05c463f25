//! The program's own threads: how many there are, and how the end of one is noticed.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

/// How many threads have begun and not ended.
static COUNT: AtomicU32 = AtomicU32::new(1);

/// The number of the program's threads, as far as it made them itself.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed) // Relaxed: the caller is one
}

/// Counts a thread that a counted thread will make.
pub fn begins() {
    COUNT.fetch_add(1, Ordering::Relaxed); // Relaxed: by a thread that is counted itself
}

/// Takes the count back: the thread was not made.
pub fn has_not_begun() {
    COUNT.fetch_sub(1, Ordering::Relaxed); // Relaxed: the calling thread is counted
}

/// Stops to count the calling thread; returns whether it was the last.
pub fn ends() -> bool {
    // AcqRel: each end is partner of the last one, which comes after all that the others did.
    COUNT.fetch_sub(1, Ordering::AcqRel) == 1
}

/// The key of the value whose destructor notices a thread's end, plus one; 0 for none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// From now on, notices the end of the calling thread, the process' first, and of threads that
/// [ask](notice_end) for it.
pub fn notice_ends(by: unsafe extern "C" fn(*mut c_void)) {
    let mut key = 0;
    // SAFETY: the destructor is a function of this library, which is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(by)) } == 0 {
        // Relaxed: set before there is another thread.
        KEY.store(key + 1, Ordering::Relaxed);
        notice_end(1);
    }
}

/// Requests that the end of the calling thread is noticed, with the number of the round.
pub fn notice_end(round: usize) {
    // Relaxed: set before there is another thread.
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key is this library's own, and not deleted; the value is a number, which no
        // code follows.
        unsafe { libc::pthread_setspecific(key, core::ptr::without_provenance(round)) };
    }
}

/// Called in the child of a fork, by its only thread.
pub fn forked() {
    COUNT.store(1, Ordering::Relaxed); // Relaxed: there is one thread
    notice_end(1);
}
