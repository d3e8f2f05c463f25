//! The log of Linux' reverse maps (`kernel/linux/mm/ldu.c`), in the checker's terms: its promises,
//! and a proof that each barrier and each rule is needed.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, fence};
use loom::thread;

mod models;

const QUEUED: usize = 1;
const WANT: usize = 2;
const DRAINING: usize = 1;
const UPDATER: usize = 2;

/// What is left out, or done wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Nothing,
    /// The barrier between an update's push and its read of the lock.
    SettleBarrier,
    /// The barrier between a section's lock and its read of the log.
    SectionBarrier,
    /// Waiting for the section that has the lock.
    Wait,
    /// Draining before the section.
    Drain,
    /// The order between the read of the lock, and that of the mark and all that comes after it.
    LockBarrier,
    /// The order between a walk and an update that finds the mark of a section after the walk.
    MarkAcquire,
    /// Taking the mark away.
    MarkEnd,
    /// The oldest first.
    Order,
    /// Looking whether the owner has changed his mind.
    Redo,
    /// What a drain has written, before the owner writes it.
    OwnerAcquire,
    /// That a drain is under way.
    Draining,
    /// The order in a look without the lock.
    PendingBarrier,
    /// The barrier between a drain's lock and mark, and its read of the lists.
    DrainBarrier,
    /// Looking at the lists for CPUs.
    Heads,
    /// Putting a child into the list in which its parent is.
    Family,
    /// Reading whether an element that changes is in the log instead of the tree.
    Queued,
    /// Taking back an update that is in the log, with the lock held.
    Cancel,
}

/// The possible owner of a node: its index in [`Log::nodes`] plus 1; 0 for none.
type Link = usize;

#[derive(Default)]
struct Node {
    state: AtomicUsize,
    next: AtomicUsize,
    /// The list of its owner in which it is, or was last.
    head: UnsafeCell<usize>,
    linked: UnsafeCell<bool>,
    /// The wanted position in the tree, and the present one. Protected by the lock.
    keys: UnsafeCell<[u32; 2]>,
}

/// Lists of a log: one for all, and those for two CPUs.
const HEADS: usize = 3;

/// A tree with its lock and its log.
struct Log {
    fault: Fault,
    heads: [AtomicUsize; HEADS],
    /// Whether the lists for CPUs are there.
    is_spread: AtomicBool,
    flags: AtomicUsize,
    /// -1 with a writer, else the number of readers.
    lock: AtomicIsize,
    nodes: [Node; 2],
    /// Nodes in the tree, in their order.
    tree: UnsafeCell<Vec<Link>>,
    /// What a look without the lock sees of the tree.
    in_tree: AtomicUsize,
    /// Page tables of the first node: a walk that meets it reads them.
    pages: UnsafeCell<u32>,
    is_settled: AtomicBool,
}

// SAFETY: threads reach the cells by the protocol, and the checker reports those that race.
unsafe impl Send for Log {}
// SAFETY: threads reach the cells by the protocol, and the checker reports those that race.
unsafe impl Sync for Log {}

impl Log {
    /// With lists for CPUs, or without.
    fn new(fault: Fault, is_spread: bool) -> Arc<Self> {
        Arc::new(Self {
            fault,
            heads: Default::default(),
            is_spread: AtomicBool::new(is_spread),
            flags: AtomicUsize::new(0),
            lock: AtomicIsize::new(0),
            nodes: [Node::default(), Node::default()],
            tree: UnsafeCell::new(Vec::new()),
            in_tree: AtomicUsize::new(0),
            pages: UnsafeCell::new(0),
            is_settled: AtomicBool::new(false),
        })
    }

    /// A barrier, unless it is what is left out.
    fn barrier(&self, fault: Fault, order: std::sync::atomic::Ordering) {
        if self.fault != fault {
            fence(order);
        }
    }

    fn node(&self, link: Link) -> &Node {
        &self.nodes[link - 1]
    }

    fn take(&self, to: isize) {
        while self.lock.compare_exchange(0, to, Acquire, Relaxed).is_err() {
            thread::yield_now();
        }
    }

    fn release(&self) {
        self.lock.store(0, Release);
    }

    /// Lists for CPUs, if they exist: pairs with [`Log::spread`]. `Acquire` represents Linux'
    /// ordering of address dependencies.
    fn is_spread(&self) -> bool {
        self.is_spread.load(Acquire)
    }

    /// `ldu_spread`, with the lock held for writing.
    fn spread(&self) {
        self.is_spread.store(true, Release);
    }

    /// `ldu_is_empty`.
    fn is_empty(&self) -> bool {
        let heads = if self.is_spread() && self.fault != Fault::Heads { HEADS } else { 1 };
        self.heads[..heads].iter().all(|head| head.load(Relaxed) == 0)
    }

    /// `ldu_choose`, on one of two CPUs.
    fn choose(&self, node: &Node, cpu: usize, after: Option<Link>) -> usize {
        let is_queued = |after: &Link| self.node(*after).state.load(Relaxed) & QUEUED != 0;
        let after = after.filter(|after| self.fault != Fault::Family && is_queued(after));
        let head = if let Some(after) = after {
            // SAFETY: the other node is of the same owner: the checker looks.
            self.node(after).head.with(|head| unsafe { *head })
        } else if self.is_spread() {
            1 + cpu
        } else {
            0
        };
        // SAFETY: the node is not queued, so it is its owner's: the checker verifies that.
        node.head.with_mut(|place| unsafe { *place = head });
        head
    }

    /// `ldu_mark`, on a CPU.
    fn mark(&self, link: Link, cpu: usize, after: Option<Link>, want: bool) {
        let node = self.node(link);
        let new = QUEUED | if want { WANT } else { 0 };
        let acquire = if self.fault == Fault::OwnerAcquire { Relaxed } else { Acquire };
        loop {
            let old = node.state.load(acquire);
            if old & QUEUED == 0 {
                break;
            }
            assert!(!want && old & WANT != 0, "a node changes once while it is in the log");
            if node.state.compare_exchange(old, new, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: the node is not queued, so it is its owner's: the checker verifies that.
        node.linked.with_mut(|linked| unsafe { *linked = !want });
        node.state.store(new, Relaxed);
        let head = &self.heads[self.choose(node, cpu, after)];
        let mut first = head.load(Relaxed);
        loop {
            node.next.store(first, Relaxed);
            match head.compare_exchange(first, link, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(found) => first = found,
            }
        }
    }

    /// Records that the first node has to be in the tree.
    fn link(&self) {
        self.mark(1, 1, None, true);
    }

    /// Records that the first node must not be in the tree.
    fn unlink(&self) {
        self.mark(1, 0, None, false);
    }

    /// `ldu_settle`.
    fn settle(&self) {
        self.barrier(Fault::SettleBarrier, SeqCst);
        let is_free = self.lock.load(Relaxed) == 0;
        self.barrier(Fault::LockBarrier, Acquire);
        if is_free || self.fault == Fault::Wait {
            return;
        }
        let acquire = if self.fault == Fault::MarkAcquire { Relaxed } else { Acquire };
        if self.flags.load(acquire) & UPDATER != 0 {
            return;
        }
        self.take(-1);
        self.update(|| self.drain());
        self.release();
    }

    /// Runs `f` with the lock held for writing, and with the mark of an updater.
    fn update(&self, work: impl FnOnce()) {
        self.flags.store(self.flags.load(Relaxed) | UPDATER, Release);
        work();
        if self.fault != Fault::MarkEnd {
            self.flags.store(self.flags.load(Relaxed) & !UPDATER, Relaxed);
        }
    }

    /// `ldu_drain_node`, with the lock held for writing.
    fn drain_node(&self, link: Link) {
        let node = self.node(link);
        let mut old = node.state.load(Relaxed);
        loop {
            let want = old & WANT != 0;
            // SAFETY: the node is queued, so it is the drain's: the checker verifies that.
            let linked = node.linked.with(|linked| unsafe { *linked });
            if want != linked {
                // SAFETY: the lock is held, and keeps other threads away.
                self.tree.with_mut(|tree| unsafe {
                    let tree = &mut *tree;
                    if want {
                        node.keys.with_mut(|keys| (*keys)[1] = (*keys)[0]);
                        tree.push(link)
                    } else {
                        tree.retain(|known| *known != link)
                    }
                    self.in_tree.store(tree.len(), Relaxed);
                });
                // SAFETY: the node is queued, so it is the drain's: the checker verifies that.
                node.linked.with_mut(|linked| unsafe { *linked = want });
            }
            if self.fault == Fault::Redo {
                node.state.store(old & !QUEUED, Release);
                return;
            }
            match node.state.compare_exchange(old, old & !QUEUED, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(found) => old = found,
            }
        }
    }

    /// `ldu_drain_list`, with the lock held for writing.
    fn drain_list(&self, head: &AtomicUsize) {
        if head.load(Relaxed) == 0 {
            return;
        }
        let mut links = Vec::new();
        let mut link = head.swap(0, AcqRel);
        while link != 0 {
            links.push(link);
            link = self.node(link).next.load(Relaxed);
        }
        if self.fault != Fault::Order {
            links.reverse();
        }
        links.into_iter().for_each(|link| self.drain_node(link));
    }

    /// `ldu_drain`, with the lock held for writing.
    fn drain(&self) {
        let heads = if self.is_spread() { HEADS } else { 1 };
        self.flags.store(self.flags.load(Relaxed) | DRAINING, Relaxed);
        self.barrier(Fault::DrainBarrier, SeqCst);
        self.heads[..heads].iter().for_each(|head| self.drain_list(head));
        self.flags.store(self.flags.load(Relaxed) & !DRAINING, Release);
    }

    /// `vma_prepare` to `vma_complete`: a section that leaves the log alone. It changes the key of
    /// the first node, which is to be in the tree.
    fn change(&self) {
        self.take(-1);
        self.update(|| {
            let node = self.node(1);
            let is_queued = self.is_queued(node);
            // SAFETY: the lock is held, and keeps other threads away.
            node.keys.with_mut(|keys| unsafe { (*keys)[0] += 1 });
            if !is_queued {
                // SAFETY: the lock is held, and keeps other threads away.
                let is_there = self.tree.with(|tree| unsafe { (*tree).contains(&1) });
                assert!(is_there, "an element is neither in the log nor in the tree");
                // SAFETY: the lock is held, and keeps other threads away.
                node.keys.with_mut(|keys| unsafe { (*keys)[1] = (*keys)[0] });
            }
        });
        self.release();
    }

    /// `ldu_is_queued`.
    fn is_queued(&self, node: &Node) -> bool {
        node.state.load(Relaxed) & QUEUED != 0 && self.fault != Fault::Queued
    }

    /// The same section, which unlinks the first node if that is in the log: `ldu_cancel`. Returns
    /// whether it did.
    fn cancel(&self) -> bool {
        let mut has_gone = false;
        self.take(-1);
        self.update(|| {
            let node = self.node(1);
            has_gone = self.is_queued(node);
            if has_gone && self.fault != Fault::Cancel {
                node.state.store(QUEUED, Relaxed);
            }
        });
        self.release();
        has_gone
    }

    /// Whether there is a log, for a section that has just taken the lock.
    fn has_log(&self) -> bool {
        self.barrier(Fault::SectionBarrier, SeqCst);
        !self.is_empty() && self.fault != Fault::Drain
    }

    /// A walk under the lock: what is in the tree.
    fn walk(&self, look: impl FnOnce(&[Link])) {
        self.take(1);
        if self.has_log() {
            self.release();
            self.take(-1);
            self.drain();
            self.lock.store(1, Release);
        }
        // SAFETY: the lock is held, and keeps other threads away.
        self.tree.with(|tree| look(unsafe { &*tree }));
        self.release();
    }

    /// A walk that reads the page tables of the first node, if it meets that.
    fn walk_pages(&self) {
        self.walk(|tree| {
            if tree.contains(&1) {
                // SAFETY: the owner frees them when no walk meets the node: the checker looks.
                self.pages.with(|pages| assert_eq!(unsafe { *pages }, 0));
            }
        });
    }

    /// The owner frees the page tables of the first node, which it has unlinked.
    fn free_pages(&self) {
        // SAFETY: no walk meets the node: the checker looks.
        self.pages.with_mut(|pages| unsafe { *pages = 1 });
    }

    /// `ldu_is_pending`, and then a read of the tree without its lock.
    fn is_mapped(&self) -> bool {
        if !self.is_empty() {
            return true;
        }
        self.barrier(Fault::PendingBarrier, Acquire);
        if self.flags.load(Relaxed) & DRAINING != 0 && self.fault != Fault::Draining {
            return true;
        }
        self.barrier(Fault::PendingBarrier, Acquire);
        self.in_tree.load(Relaxed) != 0
    }
}
