//! Telling a process from the child that it forked.

use core::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How often this process and its ancestors have forked since they loaded this library. What refers to other threads
/// and was written in another generation is void: those threads were not copied.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed) // Relaxed: written only while there is one thread
}

/// In the child of a fork, where there is one thread.
pub(super) fn next_generation() {
    GENERATION.store(generation().wrapping_add(1), Ordering::Relaxed); // Relaxed: as above
}
