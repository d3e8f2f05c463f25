//! Per-thread state, by the standard library.

extern crate std;

use core::cell::Cell;

use super::atomic::{AtomicU32, Ordering};

/// Each thread's private data. All zero in a new thread.
#[derive(Debug)]
pub struct Local {
    id: Cell<u32>,
    /// For the program that embeds this library: its own per-thread state, null in a new thread.
    pub extension: Cell<*mut ()>,
    /// For a thread's own bookkeeping by the program that embeds this library, 0 in a new thread.
    pub words: Cell<[u64; 2]>,
    /// See [`noted`].
    noted: Cell<[usize; 2]>,
}

std::thread_local! {
    static LOCAL: Local = const {
        Local {
            id: Cell::new(0),
            extension: Cell::new(core::ptr::null_mut()),
            words: Cell::new([0; 2]),
            noted: Cell::new([0; 2]),
        }
    };
}

/// The calling thread's own block.
pub fn local() -> &'static Local {
    // SAFETY: it has nothing to be dropped, so it lives as long as the thread does; `Local` is not
    // `Sync`, so the reference cannot leave the thread.
    LOCAL.with(|local| unsafe { &*core::ptr::from_ref(local) })
}

/// A number of the calling thread, which no other thread has.
pub fn id() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let local = local();
    if local.id.get() == 0 {
        local.id.set(LAST.fetch_add(1, Ordering::Relaxed) + 1); // Relaxed: only the number matters
    }
    local.id.get()
}

/// Two words of the calling thread, 0 at its start: its place in a lock's queue.
pub fn noted() -> [usize; 2] {
    local().noted.get()
}

/// Notes them.
pub fn note(words: [usize; 2]) {
    local().noted.set(words);
}

/// The interpreter has no `fork`.
pub fn forked() {
    super::process::next_generation();
}
