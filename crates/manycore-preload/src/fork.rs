//! Fork: what the child's only thread has to know.

use core::ffi::c_int;

use manycore::lock::{Futex, PlainLock};
use manycore::sync::{process, thread};

use crate::{cond, stats};

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Has [`in_child`] run in each child: after a fork by the C library, ahead of the program's own handlers, which were registered
/// later; after any other fork, at the child's first use of what threads share.
pub fn install() {
    process::watch(in_child);
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { pthread_atfork(None, None, Some(forked_by_libc)) };
}

/// In the child of a fork: a lock that a thread of the parent may have is free.
pub fn set_free(lock: &Futex) {
    // Looked at first: to write to pages that the child shares with its parent copies them.
    if !lock.looks_free() {
        // SAFETY: it is held, and not by any thread of this process: the caller is the one thread
        // of a forked child, in `in_child`, and holds none of these locks. What they protect is
        // atomic.
        unsafe { lock.release() };
    }
}

extern "C" fn forked_by_libc() {
    thread::renumber();
    // Asked for now: by its first lock the child may have no other calls left.
    thread::id();
    process::forked_by_libc();
}

extern "C" fn in_child() {
    thread::others_are_gone();
    cond::forked();
    stats::forked();
}
