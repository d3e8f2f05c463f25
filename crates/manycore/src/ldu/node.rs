//! What an object carries to be logged: two entries of the queue, a mark for each, and who knows of them.

use core::ptr::NonNull;

use super::queue::{Link, Queue};
use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, mutation, order};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It comes into the structure.
    Insert = 0,
    /// It leaves the structure.
    Remove = 1,
}

impl Operation {
    const fn inverse(self) -> Self {
        match self {
            Self::Insert => Self::Remove,
            Self::Remove => Self::Insert,
        }
    }

    /// The bit of [`Node::state`] that says that this operation's entry is in the queue, or in the hands of who drains it.
    const fn used(self) -> u8 {
        1 << self as u8
    }
}

/// The bit of [`Node::state`] that says that nobody but who drains the queue will touch the node.
const RETIRED: u8 = 4;

/// The part of an object that the log works with. An object has an owner, who alone logs what is done to it.
///
/// All zero bytes are a node of an object that is not in the structure.
pub struct Node {
    /// For each operation, the entry behind its own in the queue.
    next: [UnsafeCell<Option<Link>>; 2],
    /// For each operation, whether it is to be applied.
    marks: [AtomicBool; 2],
    state: AtomicU8,
}

// SAFETY: a link belongs to whoever puts its entry into the queue, and then to whoever takes it out: the bit `used` and the
// queue pass it on.
unsafe impl Sync for Node {}
// SAFETY: as above; a node that is queued stays where it is.
unsafe impl Send for Node {}

/// What is done with what comes out of a queue.
pub trait Target {
    /// Does this to the structure.
    fn apply(&mut self, operation: Operation, node: NonNull<Node>);

    /// The node was retired, and nobody will touch it any more.
    fn release(&mut self, node: NonNull<Node>);
}

impl Node {
    const_new! {
        /// Of an object that is not in the structure.
        pub fn new() -> Self {
            Self {
                next: [UnsafeCell::new(None), UnsafeCell::new(None)],
                marks: [AtomicBool::new(false), AtomicBool::new(false)],
                state: AtomicU8::new(0),
            }
        }
    }

    /// Does this to the object as far as its owner is concerned: the structure learns of it when the queue is drained.
    ///
    /// # Panics
    ///
    /// If the same was done last, and is not applied yet.
    ///
    /// # Safety
    ///
    /// The caller is the owner; it alternates between the two operations, beginning with [`Operation::Insert`], has not
    /// [retired](Self::retire) the node, and uses the same queue every time. The node stays where it is until it has been
    /// retired and released.
    #[inline]
    pub unsafe fn log<Q: Queue>(node: NonNull<Self>, operation: Operation, queue: &Q) {
        // SAFETY: by the caller's word.
        assert!(unsafe { Self::try_log(node, operation, queue) }, "{operation:?} twice in a row");
    }

    /// As [`log`](Self::log), but says whether it did so: not, if the same was done last, and is not applied yet.
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log), but that an operation which is not applied yet may be repeated.
    #[inline]
    pub unsafe fn try_log<Q: Queue>(node: NonNull<Self>, operation: Operation, queue: &Q) -> bool {
        // SAFETY: it is there, by the caller's word.
        let this = unsafe { node.as_ref() };
        let (mark, inverse) = (&this.marks[operation as usize], operation.inverse());
        // Phase 1: the inverse is pending, so that the two cancel. AcqRel: partner of the swaps in `settle`; what comes below
        // comes after the inverse was found applied.
        if this.marks[inverse as usize].swap(false, Ordering::AcqRel) {
            return true;
        }
        if set(mark) {
            return false;
        }
        // Phase 2: the entry is in the queue, left there by an operation that was cancelled. AcqRel: partner of `settle`: it
        // clears the bit after this, and then sees the mark; or before, and then has done with the entry.
        if this.state.fetch_or(operation.used(), order!(AcqRel, "ldu-use")) & operation.used() != 0
        {
            return true;
        }
        // Phase 3. SAFETY: the entry is not in the queue: the bit was clear, and is set now.
        unsafe { queue.push(Link::new(node, operation)) };
        true
    }

    /// The owner will not touch the node any more: it is released by who drains the queue, when all is applied.
    ///
    /// # Safety
    ///
    /// As for [`log`](Self::log), and the last operation was not an insertion.
    #[inline]
    pub unsafe fn retire<Q: Queue>(node: NonNull<Self>, queue: &Q) {
        const USED: u8 = Operation::Insert.used() | Operation::Remove.used();
        // SAFETY: it is there, by the caller's word.
        let this = unsafe { node.as_ref() };
        // AcqRel: partner of `settle`: whoever releases the object comes after its owner.
        if this.state.fetch_or(RETIRED, order!(AcqRel, "ldu-retire")) & USED != 0 {
            return;
        }
        // Nobody will come by because of an entry of it: so one is made. Relaxed: the owner alone knows of the node.
        this.state.fetch_or(Operation::Remove.used(), Ordering::Relaxed);
        // SAFETY: as in `log`.
        unsafe { queue.push(Link::new(node, Operation::Remove)) };
    }

    /// The entry behind this one.
    ///
    /// # Safety
    ///
    /// The caller has the entry of this operation.
    #[inline]
    pub(super) unsafe fn next(&self, operation: Operation) -> Option<Link> {
        // SAFETY: nobody else has the entry.
        self.next[operation as usize].with(|next| unsafe { *next })
    }

    /// Puts an entry behind this one.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    #[inline]
    pub(super) unsafe fn set_next(&self, operation: Operation, link: Option<Link>) {
        // SAFETY: as above.
        self.next[operation as usize].with_mut(|next| unsafe { *next = link });
    }

    /// Applies what an entry that was taken out of the queue stands for, if it stands for something; says how often.
    ///
    /// # Safety
    ///
    /// The caller has taken the entry, and keeps out everybody else who applies entries of this queue.
    pub(super) unsafe fn settle(link: Link, target: &mut impl Target) -> u64 {
        let (node, operation) = link.parts();
        // SAFETY: a node with an entry in the queue is there, and nodes are released below only.
        let this = unsafe { node.as_ref() };
        let mark = &this.marks[operation as usize];
        let mut applied = 0;
        // AcqRel: partner of the swap in `log`: what the owner does after it has found this update applied is not seen here.
        if mark.swap(false, Ordering::AcqRel) {
            target.apply(operation, node);
            applied += 1;
        }
        // AcqRel: partner of `log` and `retire`, see there.
        let before = this.state.fetch_and(!operation.used(), order!(AcqRel, "ldu-clear"));
        // The owner may have set the mark, and found the entry used, before the line above. Relaxed: then that line has
        // acquired the mark; otherwise the owner puts the entry into the queue again.
        if !mutation!("ldu-second-test")
            && mark.load(Ordering::Relaxed)
            // AcqRel: as above; the owner may have taken it back.
            && mark.swap(false, Ordering::AcqRel)
        {
            target.apply(operation, node);
            applied += 1;
        }
        if before & !operation.used() == RETIRED {
            target.release(node);
        }
        applied
    }
}

/// Sets the mark, which only the caller does; says whether it was set.
#[inline]
fn set(mark: &AtomicBool) -> bool {
    // Relaxed, throughout: released by what the caller does next. Who sees it earlier knows the object as it was when its
    // entry was queued.
    if cfg!(loom) {
        // The model checker does not know that no store comes in between of a swap, and that loads can collide with a store
        // that has a load before it.
        return mark.swap(true, Ordering::Relaxed);
    }
    let before = mark.load(Ordering::Relaxed);
    mark.store(true, Ordering::Relaxed);
    before
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Node {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}
