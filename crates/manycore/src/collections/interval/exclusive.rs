//! `lock:NAME` and `flat-combining`: trees of intervals that one thread has at a time.

use alloc::boxed::Box;
use core::mem::{ManuallyDrop, forget};
use core::ptr::NonNull;

use super::tree::{Entry, IntervalTree};
use crate::collections::Locked;
use crate::delegate::FlatCombining;
use crate::sync::CachePadded;
use crate::{Interval, RawLock, ReverseMap};

/// A tree that one thread has at a time.
///
/// # Safety
///
/// Every section gets the same tree, and no other thread has it meanwhile. An entry that one
/// section has inserted is there until another removes it.
pub unsafe trait Exclusive: Send + Sync {
    /// A tree without intervals.
    fn new() -> Self;

    /// Calls a function with the tree, on this or another thread.
    fn with<R: Send>(&self, section: impl FnOnce(&mut IntervalTree) -> R + Send) -> R;
}

// SAFETY: `write` acquires the lock for the section, and the tree is reached in such sections only.
unsafe impl<L: RawLock> Exclusive for Locked<IntervalTree, L> {
    fn new() -> Self {
        Self::new(IntervalTree::new())
    }

    fn with<R: Send>(&self, section: impl FnOnce(&mut IntervalTree) -> R + Send) -> R {
        self.write(section)
    }
}

// SAFETY: sections run one at a time, and the tree is reached in such sections only.
unsafe impl Exclusive for FlatCombining<IntervalTree> {
    fn new() -> Self {
        Self::new(IntervalTree::new())
    }

    fn with<R: Send>(&self, section: impl FnOnce(&mut IntervalTree) -> R + Send) -> R {
        self.with(section)
    }
}

/// Trees of intervals; each tree is owned by one thread at a time.
pub struct ExclusiveTrees<X> {
    trees: Box<[CachePadded<X>]>,
}

/// Trees of intervals, each under a lock.
pub type LockedTrees<L> = ExclusiveTrees<Locked<IntervalTree, L>>;

/// Trees of intervals, whose operations are run by the thread that has the tree.
pub type CombinedTrees = ExclusiveTrees<FlatCombining<IntervalTree>>;

/// An interval that is in no tree.
pub struct AbsentEntry<'a, X: Exclusive> {
    tree: &'a X,
    entry: Handle,
}

/// An interval that is in its tree. When this is dropped, the interval is removed.
pub struct PresentEntry<'a, X: Exclusive>(ManuallyDrop<AbsentEntry<'a, X>>);

/// The right to insert and remove an entry, which came from a box.
#[derive(Clone, Copy)]
struct Handle(NonNull<Entry>);

// SAFETY: the referenced entry is `Send`, and one handle at a time has the right to insert or
// remove it.
unsafe impl Send for Handle {}

impl Handle {
    fn entry(self) -> NonNull<Entry> {
        self.0
    }
}

impl<X: Exclusive> ExclusiveTrees<X> {
    /// Makes `trees` trees.
    #[must_use]
    pub fn new(trees: usize) -> Self {
        Self { trees: (0..trees).map(|_| CachePadded(X::new())).collect() }
    }
}

impl<'a, X: Exclusive> AbsentEntry<'a, X> {
    fn insert(self) -> PresentEntry<'a, X> {
        let entry = self.entry;
        // SAFETY: `self` proves that the entry is in no tree, and keeps it in its box; the
        // `PresentEntry` that is made from it removes it before it is freed.
        self.tree.with(move |tree| unsafe { tree.insert(entry.entry()) });
        PresentEntry(ManuallyDrop::new(self))
    }
}

impl<'a, X: Exclusive> PresentEntry<'a, X> {
    fn take_out(&self) {
        let entry = self.0.entry;
        // SAFETY: `self` says that the entry is in this tree.
        self.0.tree.with(move |tree| unsafe { tree.remove(entry.entry()) });
    }

    fn remove(mut self) -> AbsentEntry<'a, X> {
        self.take_out();
        // SAFETY: `self` is forgotten on the next line, so its content is moved once.
        let absent = unsafe { ManuallyDrop::take(&mut self.0) };
        forget(self);
        absent
    }
}

impl<X: Exclusive> Drop for AbsentEntry<'_, X> {
    fn drop(&mut self) {
        // SAFETY: `interval` has made the entry by a box, and `self` proves that it is in no tree.
        drop(unsafe { Box::from_raw(self.entry.entry().as_ptr()) });
    }
}

impl<X: Exclusive> Drop for PresentEntry<'_, X> {
    fn drop(&mut self) {
        self.take_out();
        // SAFETY: `self` is being dropped, and nothing uses its content after this.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl<X: Exclusive> ReverseMap for ExclusiveTrees<X> {
    type Absent<'a>
        = AbsentEntry<'a, X>
    where
        Self: 'a;

    type Present<'a>
        = PresentEntry<'a, X>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.trees.len()
    }

    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_> {
        let entry = Handle(NonNull::from(Box::leak(Box::new(Entry::new(interval)))));
        AbsentEntry { tree: &self.trees[tree], entry }
    }

    fn insert<'a>(&'a self, interval: Self::Absent<'a>) -> Self::Present<'a> {
        interval.insert()
    }

    fn remove<'a>(&'a self, interval: Self::Present<'a>) -> Self::Absent<'a> {
        interval.remove()
    }

    fn overlaps(
        &self,
        tree: usize,
        first: u64,
        last: u64,
        found: &mut (dyn FnMut(Interval) + Send),
    ) {
        self.trees[tree].with(|tree| tree.overlaps(first, last, found));
    }
}

impl<X> core::fmt::Debug for ExclusiveTrees<X> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ExclusiveTrees").field("trees", &self.trees.len()).finish_non_exhaustive()
    }
}

opaque! {
    [X: Exclusive] AbsentEntry<'_, X>, "AbsentEntry";
    [X: Exclusive] PresentEntry<'_, X>, "PresentEntry";
}
