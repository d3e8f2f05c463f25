//! `ldu`: trees of intervals whose updates are logged.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::tree::{Entry, IntervalTree};
use crate::ldu::{
    Absent, Deferred, Global, Item, PerCore, Present, Queue, Rooted, Statistics, Structure, Table,
};
use crate::lock::Adaptive;
use crate::sync::CachePadded;
use crate::{Interval, RawLock, ReverseMap};

/// One of the [`DeferredTrees`]. It is created only here, so that only the log inserts and removes
/// its entries.
#[derive(Debug)]
pub struct Single(IntervalTree);

impl Structure<Entry> for Single {
    fn insert(&mut self, entry: Item<'_, Entry>) {
        // SAFETY: only a log calls this, since a `Single` is made here only; updates of an entry
        // alternate, so it is in no tree, and it does not move until it is removed (`Item`).
        unsafe { self.0.insert(entry.pointer()) };
    }

    fn remove(&mut self, entry: Item<'_, Entry>) {
        // SAFETY: updates of an entry alternate, beginning with its insertion, so it is in this
        // tree.
        unsafe { self.0.remove(entry.pointer()) };
    }
}

type Tree<Q, L> = CachePadded<Deferred<Single, Entry, Q, L>>;

/// Trees of intervals, each with a queue and a lock of its own.
pub struct DeferredTrees<Q: Queue = Global, L: RawLock = Adaptive> {
    trees: Box<[Tree<Q, L>]>,
}

impl<Q: Queue, L: RawLock> DeferredTrees<Q, L> {
    /// Makes `trees` trees, with a queue for each.
    pub fn new(trees: usize, mut queue: impl FnMut() -> Q) -> Self {
        let tree = |_| CachePadded(Deferred::with_queue(Single(IntervalTree::new()), queue()));
        Self { trees: (0..trees).map(tree).collect() }
    }

    /// Updates of a tree are applied inline if there are fewer than this many for each of its
    /// reads, as in [`Deferred::eager_below`].
    #[must_use]
    pub fn eager_below(self, updates: u64) -> Self {
        let eager = |CachePadded(tree): Tree<Q, L>| CachePadded(tree.eager_below(updates));
        Self { trees: self.trees.into_iter().map(eager).collect() }
    }

    /// The number of entries drained so far, and the most entries of one drain, over all trees.
    fn sum(&self) -> Statistics {
        self.trees
            .iter()
            .map(|tree| tree.statistics())
            .fold(Statistics::default(), |sum, of_tree| sum + of_tree)
    }
}

impl<Q: Queue + Send + Sync, L: RawLock> ReverseMap for DeferredTrees<Q, L> {
    type Absent<'a>
        = Absent<'a, Single, Entry, Q, L>
    where
        Self: 'a;

    type Present<'a>
        = Present<'a, Single, Entry, Q, L>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.trees.len()
    }

    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_> {
        self.trees[tree].item(Entry::new(interval))
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
        self.trees[tree].read(|tree| tree.0.overlaps(first, last, found));
    }

    fn tend(&self, tree: usize, ticks: u64) {
        self.trees[tree].synchronize_if_due(ticks);
    }

    fn put_off_max(&self) -> u64 {
        self.sum().entries_max
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.sum().visit(visit);
    }
}

/// Trees whose entries wait in tables that each core has.
pub type TabledTrees = DeferredTrees<Rooted<Arc<Table>>>;

/// The number of places of such a table. There may be more trees, but a core works on only some of
/// them at a time.
const PLACES: usize = 64;

/// Makes `trees` trees, with tables for them.
#[must_use]
pub fn tabled(trees: usize) -> TabledTrees {
    let table = Arc::new(Table::new(PLACES));
    DeferredTrees::new(trees, || Rooted::new(table.clone()))
}

/// Several trees under one lock, with one log for each core that contains the updates of all trees.
/// For trees that come and go too fast for a table.
pub struct DeferredForest<L: RawLock = Adaptive> {
    forest: Deferred<Forest, Member, PerCore, L>,
    trees: usize,
}

/// The trees of a [`DeferredForest`].
#[derive(Debug)]
pub struct Forest(Box<[IntervalTree]>);

/// An entry of one of the trees of a [`DeferredForest`].
#[derive(Debug)]
pub struct Member {
    tree: usize,
    entry: Entry,
}

impl Structure<Member> for Forest {
    fn insert(&mut self, member: Item<'_, Member>) {
        // SAFETY: only a log calls this, since a `Forest` is made here only; updates of a member
        // alternate, so it is in no tree, and it does not move until it is removed (`Item`).
        unsafe { self.0[member.tree].insert((&member.entry).into()) };
    }

    fn remove(&mut self, member: Item<'_, Member>) {
        // SAFETY: updates of a member alternate, beginning with its insertion, so it is in this
        // tree; its number does not change.
        unsafe { self.0[member.tree].remove((&member.entry).into()) };
    }
}

impl<L: RawLock> DeferredForest<L> {
    /// Makes `trees` trees.
    #[must_use]
    pub fn new(trees: usize) -> Self {
        let forest = Forest((0..trees).map(|_| IntervalTree::new()).collect());
        Self { forest: Deferred::with_queue(forest, PerCore::new()), trees }
    }
}

impl<L: RawLock> ReverseMap for DeferredForest<L> {
    type Absent<'a>
        = Absent<'a, Forest, Member, PerCore, L>
    where
        Self: 'a;

    type Present<'a>
        = Present<'a, Forest, Member, PerCore, L>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.trees
    }

    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_> {
        assert!(tree < self.trees, "there are {} trees, and no number {tree}", self.trees);
        self.forest.item(Member { tree, entry: Entry::new(interval) })
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
        self.forest.read(|forest| forest.0[tree].overlaps(first, last, found));
    }

    fn tend(&self, _tree: usize, ticks: u64) {
        self.forest.synchronize_if_due(ticks);
    }

    fn put_off_max(&self) -> u64 {
        self.forest.statistics().entries_max
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.forest.statistics().visit(visit);
    }
}

impl<Q: Queue, L: RawLock> core::fmt::Debug for DeferredTrees<Q, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DeferredTrees").field("trees", &self.trees.len()).finish_non_exhaustive()
    }
}

impl<L: RawLock> core::fmt::Debug for DeferredForest<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DeferredForest").field("trees", &self.trees).finish_non_exhaustive()
    }
}
