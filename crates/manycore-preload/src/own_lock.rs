//! Locks of this library's own, in the child of a fork.

use manycore::lock::{Futex, PlainLock};

/// Frees a lock in the child of a fork: a thread of the parent may have held it.
pub fn set_free(lock: &Futex) {
    // Tested first: a store would copy pages that the child shares with its parent.
    if !lock.looks_free() {
        // SAFETY: it is held, and not by any thread of this process: the caller is the only thread
        // of a forked child, in `in_child`, and holds none of these locks. The data that they
        // protect are atomic.
        unsafe { lock.release() };
    }
}
