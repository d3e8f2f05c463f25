//! Two threads on two CPUs that take turns.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::CachePadded;

use super::not_pinned;
use crate::cpus;
use crate::failure::Failure;

/// A count of turns: the first thread acts at even counts, the second one at odd counts.
#[derive(Debug)]
pub(super) struct PingPong(CachePadded<AtomicU32>);

impl PingPong {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU32::new(0)))
    }

    /// Polls, without a pause, until the turn with this number.
    #[inline]
    pub fn wait(&self, turn: u32) {
        // Acquire: partner of the Release in `pass`; this thread sees everything that the other did
        // in its turn.
        while self.0.load(Ordering::Acquire) != turn {}
    }

    /// Ends a turn: the next one has this number.
    #[inline]
    pub fn pass(&self, next: u32) {
        self.0.store(next, Ordering::Release); // Release: partner of the Acquire in `wait`
    }
}

/// Runs both on their CPUs, and gives what the first returns.
pub(super) fn run<T: Send>(
    cpus: [usize; 2],
    first: impl FnOnce() -> T + Send,
    second: impl FnOnce() + Send,
) -> Result<T, Failure> {
    let start = Barrier::new(2);
    let begin = |cpu| {
        let pinned = cpus::pin(cpu).map_err(not_pinned);
        start.wait();
        pinned
    };
    // A thread that could not be pinned runs all the same, because the other thread waits for it;
    // the failure is reported.
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let pinned = begin(cpus[1]);
            second();
            pinned
        });
        let first = scope.spawn(|| {
            let pinned = begin(cpus[0]);
            let result = first();
            pinned.map(|()| result)
        });
        let panicked = |_| Err(Failure::Failed("a thread of the measurement panicked".into()));
        let result = first.join().unwrap_or_else(panicked);
        let second = second.join().unwrap_or_else(|_| {
            Err(Failure::Failed("a thread of the measurement panicked".into()))
        });
        second.and(result)
    })
}
