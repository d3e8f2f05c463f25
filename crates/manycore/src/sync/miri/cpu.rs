//! Two CPUs, each on its own node of memory.

use super::thread;

/// How many CPUs there are.
pub fn count() -> u32 {
    2
}

/// The CPU of the calling thread.
pub fn current() -> u32 {
    thread::id() % count()
}

/// [`current`].
pub fn here() -> u32 {
    current()
}

/// How many nodes of memory there are.
pub fn nodes() -> u32 {
    count()
}

/// The node of the CPU that [`current`] gives.
pub fn node() -> u32 {
    current()
}
