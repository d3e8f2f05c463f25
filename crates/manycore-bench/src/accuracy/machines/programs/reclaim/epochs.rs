//! Schemes that protect a whole operation: no reclamation at all, epochs, and quiescent states.

use manycore_simulated::sync::atomic::Ordering;

use super::scheme::{Clock, NONE, Pace, Retired, Scheme, Words, take, words};

/// Nothing is freed.
pub(super) struct Leak;

impl Scheme for Leak {
    const NAME: &'static str = "leak";
    const FREES: bool = false;

    fn new(_: usize, _: Pace) -> Self {
        Self
    }

    fn enter(&self, _: usize) {}

    fn leave(&self, _: usize) {}

    fn clock(&self) -> Option<&Clock> {
        None
    }

    fn ripe(&self, _: &mut Vec<Retired>) -> Vec<Retired> {
        Vec::new()
    }
}

/// The epoch in which each thread is.
struct Reservations {
    clock: Clock,
    epochs: Words,
}

impl Reservations {
    fn new(threads: usize, pace: Pace) -> Self {
        Self { clock: Clock::new(threads, pace), epochs: words(threads, NONE) }
    }

    /// SeqCst: a thread that frees nodes sees the reservation; otherwise it has removed its nodes
    /// before the reads that follow here.
    fn set(&self, me: usize, epoch: u64) {
        self.epochs[me].store(epoch, Ordering::SeqCst);
    }

    /// The nodes that were removed before the oldest epoch in which a thread is.
    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        // SeqCst: partner of `set`.
        let epochs = self.epochs.iter().map(|epoch| epoch.load(Ordering::SeqCst));
        let oldest = epochs.min().unwrap_or(NONE);
        take(retired, 1, |one| one.retired < oldest)
    }
}

/// Each thread stores the epoch in which its operation began.
pub(super) struct Epochs(Reservations);

impl Scheme for Epochs {
    const NAME: &'static str = "epochs";

    fn new(threads: usize, pace: Pace) -> Self {
        Self(Reservations::new(threads, pace))
    }

    fn enter(&self, me: usize) {
        self.0.set(me, self.0.clock.now());
    }

    fn leave(&self, me: usize) {
        self.0.set(me, NONE);
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.0.clock)
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        self.0.ripe(retired)
    }
}

/// After each operation, a thread stores the epoch in which it held no node.
pub(super) struct Quiescence(Reservations);

impl Scheme for Quiescence {
    const NAME: &'static str = "quiescence";

    fn new(threads: usize, pace: Pace) -> Self {
        Self(Reservations::new(threads, pace))
    }

    fn arrive(&self, me: usize) {
        self.leave(me);
    }

    fn depart(&self, me: usize) {
        self.0.set(me, NONE);
    }

    fn enter(&self, _: usize) {}

    fn leave(&self, me: usize) {
        self.0.set(me, self.0.clock.now());
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.0.clock)
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        self.0.ripe(retired)
    }
}
