//! The log of Linux' reverse maps (`kernel/linux/mm/ldu.c`), in the checker's terms: what it
//! promises, and that each barrier and each rule is needed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, fence};
use loom::thread;

use crate::check;

const QUEUED: usize = 1;
const WANT: usize = 2;
const DRAINING: usize = 1;
const UPDATER: usize = 2;

/// What is left out, or done wrongly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Nothing,
    /// The barrier between an update's push and its look at the lock.
    SettleBarrier,
    /// The barrier between a section's lock and its look at the log.
    SectionBarrier,
    /// Waiting for the section that has the lock.
    Wait,
    /// Draining before the section.
    Drain,
    /// The order between the look at the lock, and that at the mark and all that comes after it.
    LockBarrier,
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
}

/// Who may own a node: its place in [`Log::nodes`] plus 1, so that 0 is none.
type Link = usize;

#[derive(Default)]
struct Node {
    state: AtomicUsize,
    next: AtomicUsize,
    linked: UnsafeCell<bool>,
}

/// A tree with its lock and its log.
struct Log {
    fault: Fault,
    head: AtomicUsize,
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
// SAFETY: likewise.
unsafe impl Sync for Log {}

impl Log {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            fault,
            head: AtomicUsize::new(0),
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

    /// `ldu_mark`.
    fn mark(&self, link: Link, want: bool) {
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
        // SAFETY: the node is not queued, so that it is its owner's: the checker looks.
        node.linked.with_mut(|linked| unsafe { *linked = !want });
        node.state.store(new, Relaxed);
        let mut first = self.head.load(Relaxed);
        loop {
            node.next.store(first, Relaxed);
            match self.head.compare_exchange(first, link, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(found) => first = found,
            }
        }
    }

    /// `ldu_settle`.
    fn settle(&self) {
        self.barrier(Fault::SettleBarrier, SeqCst);
        let is_free = self.lock.load(Relaxed) == 0;
        self.barrier(Fault::LockBarrier, Acquire);
        if is_free || self.fault == Fault::Wait {
            return;
        }
        if self.flags.load(Relaxed) & UPDATER != 0 {
            return;
        }
        self.take(-1);
        self.update(|| self.drain());
        self.release();
    }

    /// Does something with the lock held for writing, and the mark of an updater.
    fn update(&self, work: impl FnOnce()) {
        self.flags.store(self.flags.load(Relaxed) | UPDATER, Relaxed);
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
            // SAFETY: the node is queued, so that it is the drain's: the checker looks.
            let linked = node.linked.with(|linked| unsafe { *linked });
            if want != linked {
                // SAFETY: the lock is held.
                self.tree.with_mut(|tree| unsafe {
                    let tree = &mut *tree;
                    if want {
                        tree.push(link)
                    } else {
                        tree.retain(|known| *known != link)
                    }
                    self.in_tree.store(tree.len(), Relaxed);
                });
                // SAFETY: the node is queued, so that it is the drain's: the checker looks.
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

    /// `ldu_drain`, with the lock held for writing.
    fn drain(&self) {
        self.flags.store(self.flags.load(Relaxed) | DRAINING, Relaxed);
        let mut links = Vec::new();
        let mut link = self.head.swap(0, AcqRel);
        while link != 0 {
            links.push(link);
            link = self.node(link).next.load(Relaxed);
        }
        if self.fault != Fault::Order {
            links.reverse();
        }
        links.into_iter().for_each(|link| self.drain_node(link));
        self.flags.store(self.flags.load(Relaxed) & !DRAINING, Release);
    }

    /// Whether there is a log, for a section that has just taken the lock.
    fn has_log(&self) -> bool {
        self.barrier(Fault::SectionBarrier, SeqCst);
        self.head.load(Relaxed) != 0 && self.fault != Fault::Drain
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
        // SAFETY: the lock is held.
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

    /// `ldu_is_pending`, and then a look at the tree without its lock.
    fn is_mapped(&self) -> bool {
        if self.head.load(Relaxed) != 0 {
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

/// A thread that does something with a log.
fn spawn(log: &Arc<Log>, work: impl FnOnce(&Log) + 'static) -> thread::JoinHandle<()> {
    let log = log.clone();
    thread::spawn(move || work(&log))
}

/// Exit beside walks: page tables are freed when nobody walks them any more.
fn exit_beside_walks(fault: Fault) {
    check(3, move || {
        let log = Log::new(fault);
        log.mark(1, true);
        log.walk(|tree| assert!(tree.contains(&1) || fault == Fault::Drain));
        let walker = spawn(&log, Log::walk_pages);
        log.mark(1, false);
        log.settle();
        log.free_pages();
        walker.join().unwrap();
        log.walk_pages();
    });
}

/// Fork beside walks: who begins later meets the child, after its parent.
fn fork_beside_walks(fault: Fault) {
    check(3, move || {
        let log = Log::new(fault);
        let walker = spawn(&log, |log| {
            let is_settled = log.is_settled.load(Acquire);
            log.walk(|tree| {
                assert!(!is_settled || tree.contains(&1), "a walk has missed an element");
                assert!(!tree.starts_with(&[2]), "a child is before its parent");
            });
        });
        log.mark(1, true);
        log.settle();
        log.is_settled.store(true, Release);
        log.mark(2, true);
        log.settle();
        walker.join().unwrap();
    });
}

/// A node that is unlinked while it is drained is not left in the tree.
fn exit_beside_drains(fault: Fault) {
    check(3, move || {
        let log = Log::new(fault);
        let walker = spawn(&log, |log| log.walk(|_| ()));
        log.mark(1, true);
        log.settle();
        log.mark(1, false);
        log.settle();
        walker.join().unwrap();
        log.walk(|tree| assert!(tree.is_empty(), "an element is left in the tree"));
    });
}

/// Exit beside a section of an updater and a walk after it.
fn exit_beside_an_updater_and_a_walk(fault: Fault) {
    check(3, move || {
        let log = Log::new(fault);
        log.mark(1, true);
        log.walk(|_| ());
        let others = spawn(&log, |log| {
            log.take(-1);
            if log.has_log() {
                log.drain();
            }
            log.update(|| ());
            log.release();
            log.walk_pages();
        });
        log.mark(1, false);
        log.settle();
        log.free_pages();
        others.join().unwrap();
    });
}

/// What was linked is seen without the lock, beside a drain.
fn a_look_without_the_lock(fault: Fault) {
    check(3, move || {
        let log = Log::new(fault);
        let walker = spawn(&log, |log| log.walk(|_| ()));
        let looker = spawn(&log, |log| {
            if log.is_settled.load(Acquire) {
                assert!(log.is_mapped(), "what is mapped looks as if it were not");
            }
        });
        log.mark(1, true);
        log.settle();
        log.is_settled.store(true, Release);
        walker.join().unwrap();
        looker.join().unwrap();
    });
}

const MODELS: [fn(Fault); 5] = [
    exit_beside_walks,
    fork_beside_walks,
    exit_beside_drains,
    exit_beside_an_updater_and_a_walk,
    a_look_without_the_lock,
];

#[test]
fn keeps_its_promises() {
    MODELS.into_iter().for_each(|model| model(Fault::Nothing));
}

/// Each fault, and the model that notices it.
const FAULTS: [(Fault, fn(Fault)); 11] = [
    (Fault::SettleBarrier, exit_beside_walks),
    (Fault::SectionBarrier, exit_beside_walks),
    (Fault::Wait, exit_beside_walks),
    (Fault::Drain, fork_beside_walks),
    (Fault::LockBarrier, exit_beside_walks),
    (Fault::MarkEnd, exit_beside_an_updater_and_a_walk),
    (Fault::Order, fork_beside_walks),
    (Fault::Redo, exit_beside_drains),
    (Fault::OwnerAcquire, exit_beside_drains),
    (Fault::Draining, a_look_without_the_lock),
    (Fault::PendingBarrier, a_look_without_the_lock),
];

#[test]
fn needs_each_barrier_and_each_rule() {
    let missed = |(fault, model): &(Fault, fn(Fault))| {
        let found = catch_unwind(AssertUnwindSafe(|| model(*fault)));
        found.is_ok().then_some(*fault)
    };
    let missed: Vec<Fault> = FAULTS.iter().filter_map(missed).collect();
    assert_eq!(missed, [], "nobody has noticed these");
}
