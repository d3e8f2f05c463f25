//! A queue for each core, for one structure: threads that add entries rarely contend.

use alloc::boxed::Box;

use super::queue::{Chain, FEW, Global, Link, Queue};
use crate::sync::{cpu, own_of};

/// A queue for each core.
///
/// A core is where the thread runs, or ran a while ago: several threads may use a core's queue at a
/// time. A thread that drains reads all of them, which with many cores takes as long as a read
/// of this many cache lines.
#[derive(Debug)]
pub struct PerCore(Box<[Global]>);

impl PerCore {
    /// Creates one without entries, for the cores that there are.
    #[must_use]
    pub fn new() -> Self {
        Self((0..cpu::count().max(1)).map(|_| Global::new()).collect())
    }
}

impl PerCore {
    /// The queue of the core on which the caller runs.
    #[inline]
    fn own(&self) -> &Global {
        &self.0[own_of(self.0.len())]
    }
}

// SAFETY: `push` puts an entry into one `Global`, which gives it out once, as `Queue` requires;
// `take` asks all of them.
unsafe impl Queue for PerCore {
    #[inline]
    unsafe fn push(&self, link: Link) {
        // SAFETY: the entry is in no queue and its node stays (contract of this function), as the
        // core's own queue requires.
        unsafe { self.own().push(link) };
    }

    fn take(&self, mut each: impl FnMut(Chain)) {
        self.0.iter().for_each(|queue| each(queue.take_all()));
    }

    fn take_own(&self, mut each: impl FnMut(Chain)) {
        each(self.own().take_all());
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.len() <= FEW && self.0.iter().all(Queue::is_empty)
    }

    #[inline]
    fn is_long(&self) -> bool {
        self.own().is_long()
    }
}

impl Default for PerCore {
    fn default() -> Self {
        Self::new()
    }
}
