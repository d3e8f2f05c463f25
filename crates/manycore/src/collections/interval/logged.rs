//! `oplog`: trees of intervals. Each core logs its operations with their times.

use alloc::boxed::Box;
use core::mem::{ManuallyDrop, forget};
use core::ptr::NonNull;

use super::tree::{Entry, IntervalTree};
use crate::lock::Adaptive;
use crate::oplog::{Apply, OpLog, Stamp};
use crate::sync::CachePadded;
use crate::{Interval, RawLock, ReverseMap};

/// An operation on an entry, which came from a box.
struct Operation {
    what: What,
    entry: NonNull<Entry>,
}

enum What {
    Insert,
    Remove,
    Free,
}

// SAFETY: an entry is `Send`, and a thread that has logged an operation of it does not touch it
// again except to log the next one.
unsafe impl Send for Operation {}

impl Apply<Operation> for IntervalTree {
    fn apply(&mut self, Operation { what, entry }: Operation) {
        // SAFETY: the handles below log an entry's operations in the order insert, remove, free,
        // with ascending stamps, so they are applied in this order. Until then the entry is in its
        // box.
        unsafe {
            match what {
                What::Insert => self.insert(entry),
                What::Remove => self.remove(entry),
                What::Free => drop(Box::from_raw(entry.as_ptr())),
            }
        }
    }
}

type Tree<L> = OpLog<IntervalTree, Operation, L>;

/// Trees of intervals, each with a log for each core.
pub struct LoggedTrees<L: RawLock = Adaptive> {
    trees: Box<[CachePadded<Tree<L>>]>,
}

/// An interval that is in no tree.
pub struct AbsentLogged<'a, L: RawLock> {
    tree: &'a Tree<L>,
    entry: NonNull<Entry>,
    /// The stamp of the last operation; none at first.
    last: Option<Stamp>,
}

/// An interval that is in its tree. When this is dropped, the interval is removed.
pub struct PresentLogged<'a, L: RawLock>(ManuallyDrop<AbsentLogged<'a, L>>);

// SAFETY: it consists of a reference, and the right to log operations of the entry, which one
// thread at a time has.
unsafe impl<L: RawLock> Send for AbsentLogged<'_, L> {}

impl<L: RawLock> AbsentLogged<'_, L> {
    fn log(&mut self, what: What) {
        let operation = Operation { what, entry: self.entry };
        self.last = Some(self.tree.log_after(operation, self.last.unwrap_or_default()));
    }
}

impl<L: RawLock> Drop for AbsentLogged<'_, L> {
    fn drop(&mut self) {
        match self.last {
            Some(_) => self.log(What::Free),
            // SAFETY: nothing was logged of the entry, which `interval` has made by a box.
            None => drop(unsafe { Box::from_raw(self.entry.as_ptr()) }),
        }
    }
}

impl<L: RawLock> Drop for PresentLogged<'_, L> {
    fn drop(&mut self) {
        self.0.log(What::Remove);
        // SAFETY: `self` is being dropped, and nothing uses its content after this.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl<L: RawLock> LoggedTrees<L> {
    /// Makes `trees` trees.
    #[must_use]
    pub fn new(trees: usize) -> Self {
        let tree = |_| CachePadded(OpLog::new(IntervalTree::new()));
        Self { trees: (0..trees).map(tree).collect() }
    }
}

impl<L: RawLock> ReverseMap for LoggedTrees<L> {
    type Absent<'a>
        = AbsentLogged<'a, L>
    where
        Self: 'a;

    type Present<'a>
        = PresentLogged<'a, L>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.trees.len()
    }

    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_> {
        let entry = NonNull::from(Box::leak(Box::new(Entry::new(interval))));
        AbsentLogged { tree: &self.trees[tree], entry, last: None }
    }

    fn insert<'a>(&'a self, mut interval: Self::Absent<'a>) -> Self::Present<'a> {
        interval.log(What::Insert);
        PresentLogged(ManuallyDrop::new(interval))
    }

    fn remove<'a>(&'a self, mut interval: Self::Present<'a>) -> Self::Absent<'a> {
        interval.0.log(What::Remove);
        // SAFETY: `interval` is forgotten on the next line, so its content is moved once.
        let absent = unsafe { ManuallyDrop::take(&mut interval.0) };
        forget(interval);
        absent
    }

    fn overlaps(
        &self,
        tree: usize,
        first: u64,
        last: u64,
        found: &mut (dyn FnMut(Interval) + Send),
    ) {
        self.trees[tree].read(|tree| tree.overlaps(first, last, found));
    }

    fn tend(&self, tree: usize, ticks: u64) {
        self.trees[tree].synchronize_if_due(ticks);
    }

    fn put_off_max(&self) -> u64 {
        self.trees.iter().map(|tree| tree.statistics().operations_max).max().unwrap_or(0)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let (mut merges, mut operations) = (0, 0);
        for statistics in self.trees.iter().map(|tree| tree.statistics()) {
            merges += statistics.merges;
            operations += statistics.operations;
        }
        visit("merges", merges);
        visit("merged", operations);
    }
}

impl<L: RawLock> core::fmt::Debug for LoggedTrees<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LoggedTrees").field("trees", &self.trees.len()).finish_non_exhaustive()
    }
}

opaque! {
    [L: RawLock] AbsentLogged<'_, L>, "AbsentLogged";
    [L: RawLock] PresentLogged<'_, L>, "PresentLogged";
}
