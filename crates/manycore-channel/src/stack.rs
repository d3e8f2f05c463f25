//! A stack of idle threads. The thread that worked last is on top: its stack and its caches are
//! warm.
//!
//! A stack of numbers. The owner of the numbered array keeps each number's link. A count in the
//! head's upper half changes with every push and pop, so a head that was popped and pushed again is
//! noticed (the ABA problem; it would take 2^32 changes within one `pop`).

use manycore::order;
use manycore::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The head: all zero is empty.
#[derive(Debug, Default)]
pub struct Stack {
    /// The count, and the topmost number plus one.
    head: AtomicU64,
}

const COUNT: u64 = 1 << 32;

impl Stack {
    /// Empty.
    #[cfg(not(any(loom, feature = "sim")))]
    pub const fn new() -> Self {
        Self { head: AtomicU64::new(0) }
    }

    /// Pushes a number that is on no stack.
    pub fn push<'a>(&self, number: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Relaxed: released by what follows.
            link(number).store(head as u32, Ordering::Relaxed);
            let new = (head & !(COUNT - 1)).wrapping_add(COUNT) | u64::from(number + 1);
            // Release: partner of the Acquire in `pop`; Relaxed: as above.
            let release = order!(Release, "stack-push");
            match self.head.compare_exchange(head, new, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Takes the topmost number.
    pub fn pop<'a>(&self, link: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        // Acquire, here and on failure: partner of the Release in `push`, for the link.
        let mut head = self.head.load(order!(Acquire, "stack-look"));
        loop {
            let number = (head as u32).checked_sub(1)?;
            // Relaxed: acquired with the head. If another has popped it meanwhile this is not its
            // link, and the count differs.
            let below = link(number).load(Ordering::Relaxed);
            let new = (head & !(COUNT - 1)).wrapping_add(COUNT) | u64::from(below);
            // Acquire: partner of the Release in `push`, for data that a push publishes with the
            // number, which are read after this.
            let acquire = order!(Acquire, "stack-pop");
            match self.head.compare_exchange(head, new, acquire, acquire) {
                Ok(_) => return Some(number),
                Err(changed) => head = changed,
            }
        }
    }

    /// Removes all numbers, in the child of a fork, where the threads do not exist.
    #[cfg(not(any(loom, feature = "sim")))]
    pub fn clear(&self) {
        // Relaxed: no other thread is there.
        self.head.store(0, Ordering::Relaxed);
    }
}
