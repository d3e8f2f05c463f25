//! Numbers that threads draw, to be served in this order. The child of a fork distinguishes its
//! numbers from its parent's.
//!
//! Relaxed throughout: drawing orders nothing by itself. A thread that draws a number checks
//! afterwards, or has checked before, whether the number is served, and that check orders.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{const_new, process};

/// Where numbers are drawn. Up to 2^32 - 1 threads may wait.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct Numbers {
    /// The upper half is the next number to be drawn; the lower half is the [`process::generation`]
    /// of the drawn numbers. For a free lock, a child may draw its first number in the generation
    /// of its parent.
    next: AtomicU64,
}

impl Numbers {
    const_new! {
        pub(super) fn new() -> Self {
            Self { next: AtomicU64::new(0) }
        }
    }

    /// The number that would be drawn now.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        number(self.next.load(Ordering::Relaxed))
    }

    /// Draws this number if it is the next; returns whether it did. Each number is drawn at most
    /// once.
    #[inline]
    pub(super) fn try_draw(&self, wanted: u32) -> bool {
        let word = self.next.load(Ordering::Relaxed);
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        number(word) == wanted
            && self.next.compare_exchange(word, word.wrapping_add(DRAW), done, failed).is_ok()
    }

    /// Draws a number, when the one in `serving` has been drawn, in this process or only in its
    /// parent.
    pub(super) fn draw(&self, serving: &AtomicU32) -> u32 {
        loop {
            let word = self.next.fetch_add(DRAW, Ordering::Relaxed);
            if is_current(word) {
                return number(word);
            }
            self.void(serving);
        }
    }

    /// Called in the child of a fork, whose thread holds the lock: the numbers after its own belong
    /// to the parent's threads.
    #[inline]
    pub(super) fn void_those_of_the_parent(&self, serving: &AtomicU32) {
        if !is_current(self.next.load(Ordering::Relaxed)) {
            self.void(serving);
        }
    }

    #[cold]
    fn void(&self, serving: &AtomicU32) {
        let mut word = self.next.load(Ordering::Relaxed);
        while !is_current(word) {
            let after = serving.load(Ordering::Relaxed).wrapping_add(1);
            let after = (u64::from(after) << 32) | u64::from(process::generation());
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            word = match self.next.compare_exchange(word, after, done, failed) {
                Ok(_) => after,
                Err(now) => now,
            };
        }
    }
}

/// What the word grows by at each draw.
const DRAW: u64 = 1 << 32;

fn number(word: u64) -> u32 {
    (word >> 32) as u32
}

fn is_current(word: u64) -> bool {
    word as u32 == process::generation()
}
