//! `shfl`: a word that is the lock, before a queue that its waiters sort while they wait.
//!
//! # Idea
//!
//! A waiter has time. So a waiter, and not a release as in `cna`, sorts the queue by NUMA nodes.
//! The *shuffler* searches the queue behind it, and moves the waiters of its own node forward,
//! behind those that it has already moved. It wakes them if they sleep, so that they are awake when
//! they reach the head of the queue. When the shuffler is at the head, it passes its role on to the
//! last of them, which continues. So there is one shuffler, and only it changes the queue between
//! itself and the end. The waiter behind a shuffler that has moved none begins a new group. The
//! lock itself is a word, as in `mcs-bypass`: no thread holds a node, and a running thread may
//! overtake a sleeping head.
//!
//! # Source
//!
//! S. Kashyap, I. Calciu, X. Cheng, C. Min and T. Kim, "Scalable and Practical Locking with
//! Shuffling", SOSP 2019, its blocking lock. There a shuffler passes its role on whenever it has
//! searched the queue, and each waiter that it brings forward learns its place in the group. Here
//! it continues its search until it comes to the head of the queue, and only the next shuffler gets
//! a message. The word is that of `mcs-bypass`; the bound on overtaking is ours.
//!
//! # Memory order
//!
//! Exclusion is by the word alone, see [`TopWord`]. In the queue, the swap of the tail and the link
//! make the nodes visible (Release, Acquire). Two kinds of threads write links. A thread that
//! arrives links itself to the last node, which the shuffler does not touch. The shuffler writes
//! the links of nodes behind it that have another node behind them. It publishes what it has
//! written with its role, or with the place at the head if that begins a new group (Release,
//! Acquire). Threads between it and the next shuffler see it with the word, which they acquire
//! after it.
//!
//! # Fork
//!
//! As for `mcs-bypass`: the child finds a ghost at the tail.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps. Contended, two transfers of the word and one of a node for
//! each hand-off; waiters do the sorting. Nodes are on the stacks of the waiters, since the holder
//! needs none.
//!
//! # When not to use it
//!
//! Where service has to be in order of arrival. Where sections are short: there is no time to sort,
//! and `cna` hands over sooner.

use super::link::{Link, Linked};
use super::plain::{PlainLock, without_node};
use super::top_word::TopWord;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{clock, const_new, cpu, futex, hint, mortal, order, process, tuning};
use crate::{LockInfo, Order};

/// Awake: at first, and when woken ahead.
const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// At the head of the queue, in the group of the waiter before; or as the first of a new group.
const HEAD: u32 = 2;
const HEAD_OF_NEW_GROUP: u32 = 3;

/// How many waiters of a NUMA node go before others: as many as in the paper.
const GROUP: u32 = 1024;

/// A waiter's node in the queue. The fields that shufflers read are on a line of their own, so that
/// they do not disturb hand-overs.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    next: Link<Node>,
    /// The node of memory on which its thread waits.
    home: u32,
    told: Told,
}

/// What a waiter is told.
#[derive(Debug)]
#[repr(align(64))]
struct Told {
    state: AtomicU32,
    /// Whether this is the shuffler, because another has passed on that role.
    is_shuffler: AtomicBool,
    /// The shuffler's.
    group: UnsafeCell<Group>,
}

/// The end of the waiters that have been brought forward, as far as the shuffler has searched. The
/// target is behind the shuffler, or is the shuffler itself.
#[derive(Clone, Copy, Debug)]
struct Group {
    size: u32,
    last: *const Node,
    /// The last node that was read.
    seen: *const Node,
}

impl Group {
    /// The group of one waiter.
    fn of(node: *const Node) -> Self {
        Self { size: 1, last: node, seen: node }
    }
}

mortal!(Told { state });

/// The lock whose waiters sort their queue.
#[derive(Debug)]
#[repr(C)]
pub struct Shfl {
    word: TopWord,
    tail: Link<Node>,
}

impl Default for Shfl {
    fn default() -> Self {
        Self::new()
    }
}

impl Shfl {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: TopWord::new(), tail: Link::new() }
        }
    }

    /// Waits in the queue until this is the head, and then for the word.
    #[cold]
    fn wait(&self) {
        let told = Told {
            state: AtomicU32::new(AWAKE),
            is_shuffler: AtomicBool::new(false),
            group: UnsafeCell::new(Group::of(core::ptr::null())),
        };
        let node = Node { next: Link::new(), home: cpu::node(), told };
        let this = (&raw const node).cast_mut();
        // AcqRel: Release, partner of the Acquire in the successor's swap, for the initialised
        // node; Acquire, for the predecessor's node. Behind a ghost this one is at the head.
        let mut is_shuffler = match self.tail.swap(this, order!(AcqRel, "shfl-swap")) {
            Linked::Node(before) => {
                // Release: partner of the Acquire in `Node::next`.
                // SAFETY: the predecessor stays in `wait`, and so on its stack, until `pass_head`
                // has seen its successor, which this store shows it.
                unsafe { (*before).next.store(this, order!(Release, "shfl-link")) };
                node.wait_for_head() == HEAD_OF_NEW_GROUP || node.is_shuffler()
            }
            Linked::Nothing | Linked::Ghost => {
                node.set_group(Group::of(this));
                true
            }
        };
        self.word.wait_at_head(|| {
            if is_shuffler {
                node.shuffle(|| self.word.is_free());
                is_shuffler = !node.pass_role();
            }
        });
        self.pass_head(&node, if is_shuffler { HEAD_OF_NEW_GROUP } else { HEAD });
    }

    /// Makes the next in the queue its head, as the holder of the lock.
    fn pass_head(&self, node: &Node, message: u32) {
        let next = loop {
            if let Some(next) = node.next() {
                break next;
            }
            // Relaxed: a thread that finds the queue empty reads nothing of ours but the word.
            let this = core::ptr::from_ref(node).cast_mut();
            if self.tail.clear(this, process::generation(), Ordering::Relaxed) {
                return;
            }
            hint::spin_loop();
        };
        // SAFETY: the next stays in `wait`, and its node on its stack, until the swap below has
        // made it the head. It reads its group only as the shuffler. With this message there is no
        // other shuffler: the role is this thread's, which writes the group before it passes the
        // role on.
        let state = unsafe {
            if message == HEAD_OF_NEW_GROUP {
                (*next).set_group(Group::of(next));
            }
            &raw const (*next).told.state
        };
        // Release: partner of the Acquires in `wait_for_head` and `sleep`.
        // SAFETY: the next thread's node stays on its stack until this swap; after it only the
        // address is used.
        if unsafe { (*state).swap(message, order!(Release, "shfl-head")) } == ASLEEP {
            futex::wake(state, 1);
        }
    }
}

impl Node {
    /// Waits until this is at the head of the queue; shuffles if this becomes the shuffler. Returns
    /// the message.
    fn wait_for_head(&self) -> u32 {
        loop {
            let (start, limit) = (clock::now(), tuning::spin_limit());
            loop {
                // Acquire: partner of the Release in `pass_head`.
                let state = self.told.state.load(order!(Acquire, "shfl-spin"));
                if state >= HEAD {
                    return state;
                }
                if self.is_shuffler() {
                    // Relaxed: a hint to stop.
                    self.shuffle(|| self.told.state.load(Ordering::Relaxed) >= HEAD);
                }
                if clock::has_passed(start, limit) {
                    break;
                }
                hint::spin_loop();
            }
            let state = self.sleep();
            if state >= HEAD {
                return state;
            }
        }
    }

    /// As the shuffler, moves waiters of its own NUMA node forward, until `is_needed` says that its
    /// thread has other work.
    fn shuffle(&self, is_needed: impl Fn() -> bool) {
        let mut group = self.group();
        while group.size < GROUP && !is_needed() {
            // SAFETY: the nodes of the group, and those behind this one, belong to threads that
            // stay in `wait` until they are the head. The head's role is passed on in order, and
            // this thread, which is before them, has not passed it on.
            let (last, seen) = unsafe { (&*group.last, &*group.seen) };
            let Some(next) = seen.next() else { break };
            // SAFETY: the nodes of the group, and those behind this one, belong to threads that
            // stay in `wait` until they are the head. That role is passed on in order, and this
            // thread, which is before them, has not done so.
            let node = unsafe { &*next };
            if node.home != self.home {
                group.seen = next;
                continue;
            }
            if core::ptr::eq(seen, last) {
                group.seen = next;
            } else if !node.move_behind(last, seen) {
                break;
            }
            group.last = next;
            group.size += 1;
            node.wake_ahead();
        }
        self.set_group(group);
    }

    /// Moves this node, which is behind `seen`, to behind `last`; returns whether that was
    /// possible.
    fn move_behind(&self, last: &Self, seen: &Self) -> bool {
        // At the end of the queue, the shuffler must not write the link.
        let Some(next) = self.next() else { return false };
        let Some(behind) = last.next() else { return false };
        // Relaxed, all: read by later shufflers and heads, see the page.
        seen.next.store(next, Ordering::Relaxed);
        self.next.store(behind, Ordering::Relaxed);
        last.next.store(core::ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
        true
    }

    /// Makes the last of the group the shuffler, if that is another; returns whether it did.
    fn pass_role(&self) -> bool {
        let group = self.group();
        if core::ptr::eq(group.last, self) {
            return false;
        }
        // SAFETY: the last of the group is behind this node, and its thread stays in `wait` until
        // it is the head, which this thread has not passed on.
        let last = unsafe { &*group.last };
        last.set_group(group);
        // Release: partner of the Acquire in `is_shuffler`.
        last.told.is_shuffler.store(true, order!(Release, "shfl-role"));
        true
    }

    fn is_shuffler(&self) -> bool {
        // Acquire: partner of the Release in `pass_role`.
        self.told.is_shuffler.load(order!(Acquire, "shfl-lead"))
    }

    fn group(&self) -> Group {
        // SAFETY: only the shuffler reads and writes a group, its own, and there is one shuffler.
        // It calls this.
        self.told.group.with(|group| unsafe { *group })
    }

    fn set_group(&self, now: Group) {
        // SAFETY: the caller is the shuffler or has its role to pass on. Only that thread writes
        // groups: its own, or the group of the thread that it is about to make the shuffler.
        self.told.group.with_mut(|group| unsafe { *group = now });
    }

    /// The next node in the queue, if that has linked itself.
    fn next(&self) -> Option<*mut Self> {
        // Acquire: partner of the Release in `wait`.
        match self.next.load(order!(Acquire, "shfl-next")) {
            Linked::Node(next) => Some(next),
            Linked::Nothing | Linked::Ghost => None,
        }
    }

    /// Wakes the node's thread if it sleeps, so that it is awake when it becomes the head.
    fn wake_ahead(&self) {
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed); // Relaxed, all: says nothing but that
        if self.told.state.load(Ordering::Relaxed) == ASLEEP
            && self.told.state.compare_exchange(ASLEEP, AWAKE, done, failed).is_ok()
        {
            futex::wake(&raw const self.told.state, 1);
        }
    }

    /// Sleeps until it is woken, in advance or as the head; returns the state then.
    #[cold]
    fn sleep(&self) -> u32 {
        // Relaxed on success: says only that this thread sleeps. Acquire on failure: partner of the
        // Release in `pass_head`.
        let head = order!(Acquire, "shfl-sleep");
        if let Err(state) = self.told.state.compare_exchange(AWAKE, ASLEEP, Ordering::Relaxed, head)
        {
            return state;
        }
        loop {
            // Acquire: partner of the Release in `pass_head`.
            let state = self.told.state.load(order!(Acquire, "shfl-woken"));
            if state != ASLEEP {
                return state;
            }
            futex::wait(&self.told.state, ASLEEP, None);
        }
    }
}

// SAFETY: the lock is held while the word is, which only a compare-and-swap from a free word takes,
// until a release. Sixteen bytes, and zero is a free word with an empty queue.
unsafe impl PlainLock for Shfl {
    const INFO: LockInfo = LockInfo {
        name: "shfl",
        summary: "word before a queue that its waiters sort by nodes of memory; may be bypassed while the head sleeps",
        source: "Kashyap et al., SOSP 2019; bound ours",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Relaxed: not followed.
        self.word.try_acquire(|| matches!(self.tail.load(Ordering::Relaxed), Linked::Ghost))
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait();
    }

    #[inline]
    unsafe fn release(&self) {
        self.word.release();
    }
}

without_node!(Shfl);
