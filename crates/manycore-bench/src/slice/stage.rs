//! Where the threads of a slice run: on this machine, or on a simulated one.
//!
//! What they do there is one and the same, [`Runner`](super::Runner).

use super::Step;

/// What a slice is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// Nothing is counted yet.
    WarmUp,
    /// What threads do is counted.
    Measure,
    /// The threads are to end.
    Stop,
}

/// Locks and their data, a clock, and counters.
pub(crate) trait Stage {
    /// Whether the slice is in this phase, as the thread sees it.
    fn is(&self, phase: Phase) -> bool;

    /// Publishes the number of sections that a thread has run so far.
    fn publish(&self, thread: usize, sections: u64);

    /// Time, in ticks.
    fn now(&self) -> u64;

    /// Works for this many iterations; the result depends on each of them.
    fn work(&self, value: u64, iterations: u32) -> u64;

    /// Gives up the CPU for this long.
    fn sleep(&self, ns: f64);

    /// Runs a section, and calls `on_enter` as soon as the lock is held; returns whether the thread
    /// was alone in it.
    fn section<R>(&self, step: Step, on_entry: impl FnOnce() -> R) -> (R, bool);
}
