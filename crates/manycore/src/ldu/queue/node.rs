//! The part of an object that is needed to log it: two entries of the queue, a mark for each, and
//! the users of the entries.

use core::ptr::NonNull;

use super::{Link, Queue};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, mortal, mutation, order};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object comes into the structure.
    Insert = 0,
    /// The object leaves the structure.
    Remove = 1,
}

impl Operation {
    const fn inverse(self) -> Self {
        match self {
            Self::Insert => Self::Remove,
            Self::Remove => Self::Insert,
        }
    }

    /// The bit of a [`State`] for an operation that has to be applied.
    const fn mark(self) -> u8 {
        1 << self as u8
    }

    /// The bit of a [`State`] for an entry of this operation that is in the queue, or owned by the
    /// draining thread.
    const fn used(self) -> u8 {
        4 << self as u8
    }
}

/// A node's pending operation, and whether its entry is in use. If an operation is marked, the
/// entry is in use; at most one operation is marked.
#[derive(Clone, Copy, PartialEq)]
struct State(u8);

impl State {
    const NEW: Self = Self(0);
    /// Either operation is marked.
    const MARKED: u8 = Operation::Insert.mark() | Operation::Remove.mark();
    /// Either entry is used.
    const USED: u8 = Operation::Insert.used() | Operation::Remove.used();
    /// Only the thread that drains the queue will access the node.
    const RETIRED: u8 = 16;

    /// The state after the owner has logged this operation; `None` if it is pending already.
    const fn logged(self, operation: Operation) -> Option<Self> {
        let inverse = operation.inverse().mark();
        if self.0 & inverse != 0 {
            return Some(Self(self.0 & !inverse)); // the two cancel
        }
        if self.0 & operation.mark() != 0 {
            return None;
        }
        Some(Self(self.0 | operation.mark() | operation.used()))
    }

    /// The state after the owner has retired the node. Releasing the node takes a draining thread:
    /// if no entry of the node is in use, one is now.
    const fn retired(self) -> Self {
        let entry = if self.0 & Self::USED == 0 { Operation::Remove.used() } else { 0 };
        Self(self.0 | Self::RETIRED | entry)
    }

    /// After this operation's entry was taken from the queue.
    const fn settled(self, operation: Operation) -> Self {
        Self(self.0 & !(operation.mark() | operation.used()))
    }

    /// The operation whose entry is used in this state, and was not before.
    const fn entry_since(self, before: Self) -> Option<Operation> {
        let new = self.0 & !before.0;
        if new & Operation::Insert.used() != 0 {
            Some(Operation::Insert)
        } else if new & Operation::Remove.used() != 0 {
            Some(Operation::Remove)
        } else {
            None
        }
    }
}

/// The part of an object with which the log works. An object has an owner, and only the owner logs
/// operations on it.
///
/// All zero bytes are a node of an object that is not in the structure.
pub struct Node {
    /// For each operation, the entry behind its own in the queue.
    next: [UnsafeCell<Option<Link>>; 2],
    state: AtomicU8,
}

// SAFETY: a link is written by the thread that sets the bit `used`, before it puts the entry into
// the queue, and read by the one that takes the entry out; both hand it on with Release and
// Acquire.
unsafe impl Sync for Node {}
// SAFETY: a node with an entry in a queue is not moved (contract of `log`); one without may be used
// by another thread.
unsafe impl Send for Node {}

/// What is done with what comes out of a queue.
pub trait Target {
    /// Does this to the structure.
    fn apply(&mut self, operation: Operation, node: NonNull<Node>);

    /// The node was retired, and no thread will touch it any more.
    fn release(&mut self, node: NonNull<Node>);
}

impl Node {
    const_new! {
        /// The node of an object that is not in the structure.
        pub fn new() -> Self {
            Self {
                next: [UnsafeCell::new(None), UnsafeCell::new(None)],
                state: AtomicU8::new(State::NEW.0),
            }
        }
    }

    /// Logs this operation on the object. For the owner it has happened; the structure receives it
    /// when the queue is drained.
    ///
    /// # Panics
    ///
    /// If the same was done last, and is not applied yet.
    ///
    /// # Safety
    ///
    /// The caller is the owner; it alternates between the two operations, beginning with
    /// [`Operation::Insert`], has not [retired](Self::retire) the node, and uses the same queue
    /// every time. The node stays where it is until it has been retired and released.
    #[inline]
    pub unsafe fn log<Q: Queue>(node: NonNull<Self>, operation: Operation, queue: &Q) {
        // SAFETY: the contract of this function is that of `update`, and the operations alternate,
        // or this returns false.
        assert!(unsafe { Self::try_log(node, operation, queue) }, "{operation:?} twice in a row");
    }

    /// As [`log`](Self::log), but does nothing if the last operation was the same and is not
    /// applied yet. Returns whether it logged the operation.
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log), except that an operation that is not applied yet may be repeated.
    #[inline]
    pub unsafe fn try_log<Q: Queue>(node: NonNull<Self>, operation: Operation, queue: &Q) -> bool {
        // SAFETY: the contract of this function is that of `update`, and the operations alternate,
        // or this returns false.
        unsafe { Self::update(node, queue, |state| state.logged(operation)) }
    }

    /// Whether an operation is logged and not applied yet, in the owner's view: one that is being
    /// applied does not count.
    #[inline]
    pub(in crate::ldu) fn is_pending(&self) -> bool {
        // Relaxed: only the owner marks operations; a thread that has unmarked one has the
        // structure's lock until it is applied.
        self.state.load(Ordering::Relaxed) & State::MARKED != 0
    }

    /// Whether another thread may reach it through an entry of it. Only the owner can cause that.
    #[inline]
    pub(in crate::ldu) fn is_known(&self) -> bool {
        // Acquire: partner of `settle`, which has done with the entry by then.
        self.state.load(order!(Acquire, "ldu-known")) & State::USED != 0
    }

    /// Retires the node, which the owner will not use any more. The draining thread releases it
    /// when all operations are applied.
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log), and the last operation was not an insertion.
    #[inline]
    pub unsafe fn retire<Q: Queue>(node: NonNull<Self>, queue: &Q) {
        // SAFETY: the contract of this function is that of `update`; after it the owner does not
        // use the node.
        unsafe { Self::update(node, queue, |state| Some(state.retired())) };
    }

    /// [Logs](Self::log) a removal, and [retires](Self::retire) the node, at the price of one of
    /// the two.
    ///
    /// # Panics
    ///
    /// As for [`log`](Self::log).
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log).
    #[inline]
    pub unsafe fn remove_and_retire<Q: Queue>(node: NonNull<Self>, queue: &Q) {
        let removed = |state: State| Some(state.logged(Operation::Remove)?.retired());
        // SAFETY: the contract of this function is that of `update`; after it the owner does not
        // use the node.
        assert!(unsafe { Self::update(node, queue, removed) }, "Remove twice in a row");
    }

    /// Changes the state for the owner, and queues the entry if the change begins to use it.
    /// Returns false, and does nothing, if `after` gives no new state.
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log).
    #[inline]
    unsafe fn update<Q: Queue>(
        node: NonNull<Self>,
        queue: &Q,
        after: impl Fn(State) -> Option<State>,
    ) -> bool {
        // SAFETY: the node is there until it was retired and released (contract of this function).
        let state = &unsafe { node.as_ref() }.state;
        // Relaxed, here and on failure: the compare-and-swap decides. (The model checker misses a
        // collision of a load with another thread's read-modify-write if that thread executes a
        // load before it.)
        let mut before = State(if cfg!(loom) {
            state.fetch_or(0, Ordering::Relaxed)
        } else {
            state.load(Ordering::Relaxed)
        });
        let entry = loop {
            let Some(after) = after(before) else { return false };
            // AcqRel: partner of `settle`. If that comes first, it has finished with the entry;
            // otherwise it comes after the owner's actions.
            let both = order!(AcqRel, "ldu-update");
            match state.compare_exchange_weak(before.0, after.0, both, Ordering::Relaxed) {
                Ok(_) => break after.entry_since(before),
                Err(changed) => before = State(changed),
            }
        };
        if let Some(operation) = entry {
            // SAFETY: the bit `used` was clear, so that the entry is in no queue, and the
            // compare-and-swap of this thread has set it. The node stays until it was retired and
            // released, which takes that this entry is given out (contract of this function).
            unsafe { queue.push(Link::new(node, operation)) };
        }
        true
    }

    /// The entry behind this one.
    ///
    /// # Safety
    ///
    /// The caller has the entry of this operation.
    #[inline]
    pub(super) unsafe fn next(&self, operation: Operation) -> Option<Link> {
        // SAFETY: the caller has the entry (contract of this function), and only the entry's owner
        // reads and writes the link.
        self.next[operation as usize].with(|next| unsafe { *next })
    }

    /// Puts an entry behind this one.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    #[inline]
    pub(super) unsafe fn set_next(&self, operation: Operation, link: Option<Link>) {
        // SAFETY: the caller has the entry (contract of this function), and only the entry's owner
        // reads and writes the link.
        self.next[operation as usize].with_mut(|next| unsafe { *next = link });
    }

    /// Applies the operation of an entry that was taken out of the queue; returns whether there was
    /// one.
    ///
    /// # Safety
    ///
    /// The caller has taken the entry, and no other thread applies entries of this queue meanwhile.
    pub(super) unsafe fn settle(link: Link, target: &mut impl Target) -> bool {
        let (node, operation) = link.parts();
        // SAFETY: the caller has taken an entry of the node. A node is released only when no entry
        // of it is used, so it is valid until `Released` is dropped.
        let state = &unsafe { node.as_ref() }.state;
        let early = mutation!("ldu-second-test").then(|| state.load(Ordering::Relaxed)); // Relaxed: a mistake in any order
        // AcqRel: partner of `update`. The owner's earlier actions are seen here. What the owner
        // does after it has found that this update was taken is not seen here.
        let both = order!(AcqRel, "ldu-settle");
        let before = State(state.fetch_and(State(u8::MAX).settled(operation).0, both));
        let is_marked = early.unwrap_or(before.0) & operation.mark() != 0;
        let released =
            Released { is_last: before.settled(operation).0 == State::RETIRED, node, target };
        if is_marked {
            released.target.apply(operation, node);
        }
        is_marked
    }
}

/// A node whose entry was taken: released at the end if that was the last of it, also if the
/// structure panics.
struct Released<'a, T: Target> {
    is_last: bool,
    node: NonNull<Node>,
    target: &'a mut T,
}

impl<T: Target> Drop for Released<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_last {
            self.target.release(self.node);
        }
    }
}

mortal!(Node { state });

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

opaque! { [] Node, "Node"; }
