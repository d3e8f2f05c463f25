//! `ldu-settled`, `ldu-settled-per-cpu` and `ldu-combined`: the form of deferred update that Linux
//! needs. When an update has returned, each read that began before it has ended.
//!
//! # Idea
//!
//! An update goes into a log without the tree's lock, and the next owner of the lock applies the
//! log first, as in [`DeferredTrees`](super::DeferredTrees). A kernel needs more. After the update
//! it frees page tables, which a walk that began earlier may still be reading. So an update checks
//! the lock after it is in the log. If a walk owns the lock, the update waits until the walk is
//! over. If a thread owns the lock only to apply a log, the update does not wait. `ldu-combined`
//! takes the lock if it is free and applies the update at once. It logs only while another thread
//! owns the lock. That thread applies the log before it leaves, so no entry stays in a log.
//!
//! # Source
//!
//! LDU is by J. Kyong; see [`crate::ldu`]. This is the form of `kernel/linux`, whose `mm/ldu.c`
//! contains the proof, with one list for a tree or one for each CPU. Three things differ here.
//! Intervals have an order of their own, so lists need not be reversed and a child need not be
//! inserted next to its parent. Walks exclude each other. The lists for CPUs exist from the start.
//!
//! # Memory order
//!
//! An update pushes, executes a full barrier and reads `section`. A section writes `section`,
//! executes a full barrier and reads the lists. So either the section finds the update in a list,
//! or the update sees the section. `tests/loom/kernel_log.rs` tests the protocol, with a mutation
//! for each of its barriers.
//!
//! # Cost
//!
//! One compare-and-swap on a shared line, or on this CPU's line; none if an update cancels one that
//! is still in the log. The owner of the lock reads the line of each list.
//!
//! # When not to use it
//!
//! Where no update relies on earlier walks having ended: [`DeferredTrees`](super::DeferredTrees)
//! never waits.

use alloc::boxed::Box;
use core::mem::{ManuallyDrop, forget};
use core::ptr::{self, NonNull};

use super::tree::{Entry, IntervalTree};
use crate::due::Due;
use crate::lock::{Adaptive, Guarded};
use crate::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};
use crate::sync::cell::UnsafeCell;
use crate::sync::phase::{self, Phase};
use crate::sync::{CachePadded, cpu, full_fence, mutation, order, own_of};
use crate::{Interval, RawLock, ReverseMap};

/// The node is in a list.
const QUEUED: u8 = 1;
/// It is to be in the tree.
const WANT: u8 = 2;

/// No thread has the lock.
const FREE: u8 = 0;
/// A thread walks the tree.
const WALK: u8 = 1;
/// A thread applies the log, or an update of its own.
const UPDATE: u8 = 2;

/// A thread that makes a list this long applies the log.
const LONG: usize = 256;

/// A tree of many CPUs has this many lists: then some share one.
const LISTS_MAX: u32 = 64;

/// An interval with its place in a log.
struct Node {
    entry: Entry,
    state: AtomicU8,
    /// One for the owner, and one while the node is in a list.
    references: AtomicUsize,
    next: AtomicPtr<Self>,
    /// Whether the node is in the tree. It belongs to the node's owner while the node is not
    /// queued, and otherwise to the thread that drains.
    linked: UnsafeCell<bool>,
}

/// Nodes that are to be inserted into the tree or removed from it, newest first.
struct List {
    first: AtomicPtr<Node>,
    /// How many nodes were added since the list was emptied, or a few more.
    length: AtomicUsize,
}

struct LockedTree {
    tree: IntervalTree,
    drains: u64,
    entries: u64,
    applied: u64,
    waits: u64,
    entries_max: u64,
}

struct Tree<L> {
    lists: Box<[CachePadded<List>]>,
    shared: CachePadded<Guarded<LockedTree, L>>,
    /// The purpose for which the lock is held. The owner of the lock writes it.
    section: AtomicU8,
    combines: bool,
    due: Due,
}

/// Trees of intervals whose updates wait for walks that began before.
pub struct SettledTrees<L: RawLock = Adaptive> {
    trees: Box<[CachePadded<Tree<L>>]>,
}

/// An interval that is in no tree.
pub struct AbsentSettled<'a, L: RawLock> {
    tree: &'a Tree<L>,
    node: NonNull<Node>,
}

/// An interval that is in its tree. When this is dropped, the interval is removed.
pub struct PresentSettled<'a, L: RawLock>(ManuallyDrop<AbsentSettled<'a, L>>);

// SAFETY: it consists of a reference, and the right to log updates of the node, which one thread at
// a time has.
unsafe impl<L: RawLock> Send for AbsentSettled<'_, L> {}

impl<L: RawLock> SettledTrees<L> {
    /// This many trees, with a list for each.
    #[must_use]
    pub fn new(trees: usize) -> Self {
        Self::with(trees, 1, false)
    }

    /// Creates trees with a list for each CPU, and at most 64 lists.
    #[must_use]
    pub fn per_cpu(trees: usize) -> Self {
        Self::with(trees, cpu::count().clamp(1, LISTS_MAX) as usize, false)
    }

    /// Creates trees in which an update is logged only while another thread owns the lock; that
    /// thread applies the update.
    #[must_use]
    pub fn combined(trees: usize) -> Self {
        Self::with(trees, 1, true)
    }

    fn with(trees: usize, lists: usize, combines: bool) -> Self {
        Self { trees: (0..trees).map(|_| CachePadded(Tree::new(lists, combines))).collect() }
    }
}

/// A section under the lock, from [`Tree::enter`] on.
struct Section<'a>(&'a AtomicU8);

impl Drop for Section<'_> {
    fn drop(&mut self) {
        // Release: partner of the Acquire in `settle`, of an update that finds the lock free.
        self.0.store(FREE, order!(Release, "settled-free"));
    }
}

impl<L: RawLock> Tree<L> {
    fn new(lists: usize, combines: bool) -> Self {
        let list = |_| {
            let (first, length) = (AtomicPtr::new(ptr::null_mut()), AtomicUsize::new(0));
            CachePadded(List { first, length })
        };
        let inner = LockedTree {
            tree: IntervalTree::new(),
            drains: 0,
            entries: 0,
            applied: 0,
            waits: 0,
            entries_max: 0,
        };
        Self {
            lists: (0..lists).map(list).collect(),
            shared: CachePadded(Guarded::new(inner)),
            section: AtomicU8::new(FREE),
            combines,
            due: Due::new(),
        }
    }

    /// Announces the purpose for which the caller has taken the lock.
    fn enter(&self, what: u8) -> Section<'_> {
        // Release: partner of the Acquire in `settle`: earlier walks are over for an update that
        // finds the mark of another update.
        self.section.store(what, Ordering::Release);
        // Partner of the fence in `settle`.
        full_fence!("settled-section-fence");
        Section(&self.section)
    }

    fn is_empty(&self) -> bool {
        // Relaxed: the fence before this orders it.
        self.lists.iter().all(|list| list.first.load(Ordering::Relaxed).is_null())
    }

    /// Logs that a node is to be inserted into the tree, or removed from it. Returns whether the
    /// list is long.
    ///
    /// # Safety
    ///
    /// The caller owns the node. For a removal the node must be in the tree or queued for
    /// insertion; for an insertion it must not be.
    unsafe fn mark(&self, node: NonNull<Node>, want: bool) -> bool {
        // SAFETY: the owner's reference keeps it (contract of this function).
        let this = unsafe { node.as_ref() };
        let new = QUEUED | if want { WANT } else { 0 };
        loop {
            // Acquire: partner of the Release in `drain_node`, which has written `linked` before.
            let old = this.state.load(order!(Acquire, "settled-owner"));
            if old & QUEUED == 0 {
                break;
            }
            // AcqRel: Release, partner of the exchange in `drain_node`, for what the owner did
            // before; Acquire, of that exchange's Release. Relaxed on failure: the word is read
            // again.
            let swapped =
                this.state.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
            if swapped.is_ok() {
                return false;
            }
        }
        // SAFETY: a node that is not queued belongs to its owner, which calls this, and not to the
        // thread with the lock.
        this.linked.with_mut(|linked| unsafe { *linked = !want });
        // Relaxed: the push publishes both.
        this.references.fetch_add(1, Ordering::Relaxed);
        this.state.store(new, Ordering::Relaxed);
        let list = &self.lists[own_of(self.lists.len())];
        // Relaxed: the compare-and-swap decides.
        let mut first = list.first.load(Ordering::Relaxed);
        loop {
            // Relaxed: the push publishes it.
            this.next.store(first, Ordering::Relaxed);
            // AcqRel: partner of the Acquire in `drain_list`, which reads the node. Relaxed on
            // failure: it is tried again.
            let pushed = list.first.compare_exchange(
                first,
                node.as_ptr(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => break,
                Err(found) => first = found,
            }
        }
        // Relaxed: a guess.
        list.length.fetch_add(1, Ordering::Relaxed) >= LONG
    }

    /// Returns when no walk goes on that began before.
    fn settle(&self, is_long: bool) {
        // Partner of the fence in `enter`.
        full_fence!("settled-update-fence");
        // Acquire: partner of the Release in `enter` and of that at the end of a section.
        let section = self.section.load(order!(Acquire, "settled-section"));
        if section == WALK && !mutation!("settled-nobody-waits") {
            self.shared.with(|inner| {
                inner.waits += 1;
                self.drain_as_update(inner);
            });
        } else if is_long {
            self.shared.try_with(|inner| self.drain_as_update(inner));
        }
    }

    fn drain_as_update(&self, inner: &mut LockedTree) {
        let _section = self.enter(UPDATE);
        self.drain(inner);
    }

    /// A node comes into the tree, or leaves it.
    ///
    /// # Safety
    ///
    /// As for [`mark`](Self::mark).
    unsafe fn update(&self, node: NonNull<Node>, want: bool) {
        if self.combines {
            let applied = self.shared.try_with(|inner| {
                let _section = self.enter(UPDATE);
                self.drain(inner);
                // SAFETY: the log is empty, so the node is not queued. It belongs to the caller,
                // and is in the tree or not, as this function's contract says.
                unsafe { inner.apply(node, want) };
            });
            if applied.is_none() {
                // SAFETY: the caller owns the node, and its insertions and removals alternate
                // (contract of this function, that of `mark`).
                unsafe { self.mark(node, want) };
                self.settle(false);
            }
            self.combine();
            return;
        }
        // SAFETY: the caller owns the node, and its insertions and removals alternate (contract of
        // this function, that of `mark`).
        let is_long = unsafe { self.mark(node, want) };
        self.settle(is_long);
    }

    /// Applies updates that were logged while a thread held the lock; that thread has released it,
    /// or is about to.
    fn combine(&self) {
        loop {
            // SeqCst: partner of itself in another thread. Either the pushing thread finds the lock
            // free, or the thread that has left the lock finds the pushed entry. Otherwise the
            // entry would stay in the log until the next section.
            fence(Ordering::SeqCst);
            if self.is_empty()
                || self.shared.try_with(|inner| self.drain_as_update(inner)).is_none()
            {
                return;
            }
        }
    }

    /// Applies the log. The caller has the lock, and has announced its purpose.
    fn drain(&self, inner: &mut LockedTree) {
        let drained: u64 = phase::during(Phase::Log, || {
            self.lists.iter().map(|list| Self::drain_list(list, inner)).sum()
        });
        if drained > 0 {
            inner.drains += 1;
            inner.entries += drained;
            inner.entries_max = inner.entries_max.max(drained);
        }
    }

    fn drain_list(list: &List, inner: &mut LockedTree) -> u64 {
        // Relaxed: the fence in `enter` orders it.
        if list.first.load(Ordering::Relaxed).is_null() {
            return 0;
        }
        // AcqRel: partner of the Release of each push.
        let mut next = NonNull::new(list.first.swap(ptr::null_mut(), Ordering::AcqRel));
        // Relaxed: a guess.
        list.length.store(0, Ordering::Relaxed);
        let mut drained = 0;
        while let Some(node) = next {
            // Relaxed: the swap has acquired it. SAFETY: the list's reference keeps the node until
            // it is dropped on the next line.
            next = NonNull::new(unsafe { node.as_ref() }.next.load(Ordering::Relaxed));
            // SAFETY: the list was taken as a whole, so that this thread alone has the node, and
            // the caller has the lock.
            unsafe { inner.drain_node(node) };
            drained += 1;
        }
        drained
    }
}

impl LockedTree {
    /// Inserts or removes a node, immediately.
    ///
    /// # Safety
    ///
    /// The caller owns the node, and the node is not queued. It is in the tree if `want` is false,
    /// and not in the tree if `want` is true.
    unsafe fn apply(&mut self, node: NonNull<Node>, want: bool) {
        // SAFETY: the owner's reference keeps it (contract of this function).
        let this = unsafe { node.as_ref() };
        // SAFETY: the caller has the lock, under which alone the tree is changed, and the node is
        // there as `want` asks (contract of this function).
        unsafe { self.change(this, want) };
        // Relaxed: the caller reads it next.
        this.state.store(if want { WANT } else { 0 }, Ordering::Relaxed);
        self.applied += 1;
    }

    /// # Safety
    ///
    /// If `want` is false, the node is in the tree; otherwise it is not. It does not move while it
    /// is in the tree.
    unsafe fn change(&mut self, node: &Node, want: bool) {
        let entry = NonNull::from(&node.entry);
        // SAFETY: a node to be removed is in this tree, one to be inserted is not, and it does not
        // move meanwhile (contract of this function).
        unsafe {
            match want {
                true => self.tree.insert(entry),
                false => self.tree.remove(entry),
            }
        }
    }

    /// # Safety
    ///
    /// The node was in a list, and is in none any more. The caller has the lock.
    unsafe fn drain_node(&mut self, node: NonNull<Node>) {
        // SAFETY: a node in a list has a reference of the list's, which is dropped at the end of
        // this function.
        let this = unsafe { node.as_ref() };
        // Relaxed: the compare-and-swap below sees whether that is still so.
        let mut old = this.state.load(Ordering::Relaxed);
        loop {
            let want = old & WANT != 0;
            // SAFETY: it is queued, so it belongs to this thread, which has the lock.
            let linked = this.linked.with(|linked| unsafe { *linked });
            if want != linked {
                // SAFETY: `linked` says whether it is in the tree; the last reference frees it,
                // when it has left the tree.
                unsafe { self.change(this, want) };
                // SAFETY: it is queued, so it belongs to this thread, which has the lock.
                this.linked.with_mut(|linked| unsafe { *linked = want });
                self.applied += 1;
            }
            // AcqRel: partner of the Acquire in `mark`. If the owner has logged the opposite
            // operation since, it has left the node to this loop. Relaxed on failure: the value
            // only says what the owner wants, and no other data depends on it.
            let cleared = old & !QUEUED;
            let swapped =
                this.state.compare_exchange(old, cleared, Ordering::AcqRel, Ordering::Relaxed);
            match swapped {
                Ok(_) => break,
                Err(found) => old = found,
            }
        }
        // SAFETY: a node in a list has a reference of the list's, which is dropped here, once it
        // was taken out.
        unsafe { put(node) };
    }
}

/// Drops a reference.
///
/// # Safety
///
/// The reference belongs to the caller, and is not used again. The last reference is dropped when
/// the node is in no tree.
unsafe fn put(node: NonNull<Node>) {
    // SAFETY: the reference keeps it (contract of this function). AcqRel: each drop of a reference
    // is partner of the last one, so that the thread that frees it comes after all uses by others.
    if unsafe { node.as_ref() }.references.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: `interval` has made it by a box, and this was the last reference.
        drop(unsafe { Box::from_raw(node.as_ptr()) });
    }
}

impl<L> Drop for Tree<L> {
    /// The nodes that are left in lists: those of forgotten handles, and those to be removed.
    fn drop(&mut self) {
        for list in &self.lists {
            // Acquire: partner of the Release of each push.
            let mut next = NonNull::new(list.first.load(Ordering::Acquire));
            while let Some(node) = next {
                // Relaxed: the load above has acquired it. SAFETY: the list's reference keeps it
                // until the next line. No other thread has the tree, and its entries are not read
                // any more.
                next = NonNull::new(unsafe { node.as_ref() }.next.load(Ordering::Relaxed));
                // SAFETY: the node has a reference of the list's, which is not used after this; the
                // tree is being dropped, so that no thread finds the node in it.
                unsafe { put(node) };
            }
        }
    }
}

impl<L: RawLock> Drop for AbsentSettled<'_, L> {
    fn drop(&mut self) {
        // SAFETY: `self` is the owner, whose reference it drops here once; `self` is not used after
        // this.
        unsafe { put(self.node) };
    }
}

impl<L: RawLock> Drop for PresentSettled<'_, L> {
    fn drop(&mut self) {
        // SAFETY: `self` owns the node, and proves that it is in the tree or queued for insertion.
        unsafe { self.0.tree.update(self.0.node, false) };
        // SAFETY: `self` is being dropped, and nothing uses its content after this.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl<L: RawLock> ReverseMap for SettledTrees<L> {
    type Absent<'a>
        = AbsentSettled<'a, L>
    where
        Self: 'a;

    type Present<'a>
        = PresentSettled<'a, L>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.trees.len()
    }

    fn interval(&self, tree: usize, interval: Interval) -> Self::Absent<'_> {
        let tree = &self.trees[tree];
        let node = Node {
            entry: Entry::new(interval),
            state: AtomicU8::new(0),
            references: AtomicUsize::new(1),
            next: AtomicPtr::new(ptr::null_mut()),
            linked: UnsafeCell::new(false),
        };
        AbsentSettled { tree, node: NonNull::from(Box::leak(Box::new(node))) }
    }

    fn insert<'a>(&'a self, interval: Self::Absent<'a>) -> Self::Present<'a> {
        // SAFETY: `interval` owns the node, and proves that it is not in the tree.
        unsafe { interval.tree.update(interval.node, true) };
        PresentSettled(ManuallyDrop::new(interval))
    }

    fn remove<'a>(&'a self, mut interval: Self::Present<'a>) -> Self::Absent<'a> {
        // SAFETY: `interval` owns the node, and proves that it is in the tree or queued for
        // insertion.
        unsafe { interval.0.tree.update(interval.0.node, false) };
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
        let tree = &self.trees[tree];
        tree.shared.with(|inner| {
            let _section = tree.enter(WALK);
            tree.drain(inner);
            inner.tree.overlaps(first, last, found);
        });
        if tree.combines {
            tree.combine();
        }
    }

    fn tend(&self, tree: usize, ticks: u64) {
        let tree = &self.trees[tree];
        if let Some(_claim) = tree.due.claim(ticks) {
            tree.shared.try_with(|inner| tree.drain_as_update(inner));
        }
    }

    fn put_off_max(&self) -> u64 {
        let max = |tree: &CachePadded<Tree<L>>| tree.shared.with(|inner| inner.entries_max);
        self.trees.iter().map(max).max().unwrap_or(0)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let mut sums = [("drains", 0), ("entries", 0), ("applied", 0), ("waits", 0)];
        for tree in &self.trees {
            let counts =
                tree.shared.with(|inner| [inner.drains, inner.entries, inner.applied, inner.waits]);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| sum.1 += count);
        }
        sums.into_iter().for_each(|(name, sum)| visit(name, sum));
    }
}

impl<L: RawLock> core::fmt::Debug for SettledTrees<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SettledTrees").field("trees", &self.trees.len()).finish_non_exhaustive()
    }
}

impl<L: RawLock> core::fmt::Debug for AbsentSettled<'_, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AbsentSettled").finish_non_exhaustive()
    }
}

impl<L: RawLock> core::fmt::Debug for PresentSettled<'_, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PresentSettled").finish_non_exhaustive()
    }
}
