//! Waiting on a word, by the simulated operating system.

use core::ptr::from_ref;

use manycore_sim::backend;

use super::super::{Deadline, Woken};
use super::atomic::{AtomicU32, AtomicU64};
use super::clock;

/// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline.
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
    let word = from_ref(word).cast::<u32>();
    // SAFETY: the word outlives the call, and only one simulated thread runs at a time.
    sleep(word.addr(), || unsafe { word.read_volatile() } == expected, deadline)
}

/// [`wait`] on the lower half of a word, to be woken by [`wake_low`].
pub fn wait_low(word: &AtomicU64, expected: u32, deadline: Option<Deadline>) -> Woken {
    let word = from_ref(word).cast::<u64>();
    // SAFETY: the word outlives the call, and only one simulated thread runs at a time.
    sleep(word.addr(), || unsafe { word.read_volatile() } as u32 == expected, deadline)
}

fn sleep(word: usize, unchanged: impl FnOnce() -> bool, deadline: Option<Deadline>) -> Woken {
    let until = deadline.as_ref().map(clock::moment);
    if backend::futex_wait(word, unchanged, until) { Woken::TimedOut } else { Woken::Perhaps }
}

/// Wakes at most `count` threads that sleep on `word`, whose memory may be gone.
pub fn wake(word: *const AtomicU32, count: u32) {
    backend::futex_wake(word.addr(), count);
}

/// [`wake`] for [`wait_low`].
pub fn wake_low(word: *const AtomicU64, count: u32) {
    backend::futex_wake(word.addr(), count);
}
