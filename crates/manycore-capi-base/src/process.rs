//! The number of each thread, and its handling in the child of a fork.
//!
//! A thread that uses the library for the first time takes a number, which is noted in the thread's
//! own block. In a child that it forks, the thread learns that it is another thread.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::thread;

/// The number of the calling thread among the process' threads, from 1 on. It identifies a lock's
/// owner. Unlike the thread's id it is the same in a forked child, which has the locks that the
/// thread held.
#[inline]
pub fn holder() -> u32 {
    // In the first of the thread's two words.
    match thread::local().words.get()[0] {
        0 => prepare(),
        number => number as u32,
    }
}

#[cold]
fn prepare() -> u32 {
    static BEFORE: AtomicU32 = AtomicU32::new(0);
    static FORKS: Once = Once::new();
    in_children(&FORKS, forked);
    // Relaxed: only for a number of its own. After four thousand million threads they begin again.
    let number = BEFORE.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    let words = &thread::local().words;
    words.set([number.into(), words.get()[1]]);
    number
}

/// Makes each child that is forked from now on run the function, in its only thread. Does so once.
pub fn in_children(once: &Once, function: extern "C" fn()) {
    once.call_once(|| {
        // SAFETY: the handler is a function of this library, which is not unloaded: threads have
        // destructors in it.
        unsafe { libc::pthread_atfork(None, None, Some(function)) };
    });
}

extern "C" fn forked() {
    thread::forked();
}
