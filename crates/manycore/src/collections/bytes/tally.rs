//! How many records and bytes there are, counted on each CPU's line.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{CachePadded, array_of, const_new, cpu, tuning};

/// The number of counters. With more CPUs, some CPUs share one.
const COUNTERS: usize = 64;

/// Sums that wrap: a record may be added on one CPU and subtracted on another.
pub(super) struct Tally([CachePadded<Counters>; COUNTERS]);

struct Counters {
    records: AtomicUsize,
    bytes: AtomicUsize,
}

/// By how much something is more, or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub records: isize,
    pub bytes: isize,
}

impl Change {
    pub fn and(self, other: Self) -> Self {
        Self { records: self.records + other.records, bytes: self.bytes + other.bytes }
    }
}

impl Counters {
    const_new! {
        fn new() -> Self {
            Self { records: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
        }
    }
}

impl Tally {
    pub fn new() -> Self {
        Self(array_of!(CachePadded(Counters::new()); COUNTERS))
    }

    #[inline]
    pub fn add(&self, change: Change) {
        let counters = &self.0[cpu::current() as usize % tuning::places(COUNTERS)];
        // Relaxed, throughout: these are statistics. A thread that learns of a change also counts
        // it, because the way by which it learns orders the two.
        if change.records != 0 {
            counters.records.fetch_add(change.records.cast_unsigned(), Ordering::Relaxed);
        }
        if change.bytes != 0 {
            counters.bytes.fetch_add(change.bytes.cast_unsigned(), Ordering::Relaxed);
        }
    }

    fn sum(&self, of: impl Fn(&Counters) -> &AtomicUsize) -> usize {
        let sum = self.0.iter().map(|c| of(c).load(Ordering::Relaxed)); // Relaxed: see `add`
        // While other threads count, the sum may be negative for a moment.
        sum.fold(0, usize::wrapping_add).cast_signed().max(0).cast_unsigned()
    }

    pub fn records(&self) -> usize {
        self.sum(|counters| &counters.records)
    }

    pub fn bytes(&self) -> usize {
        self.sum(|counters| &counters.bytes)
    }
}
