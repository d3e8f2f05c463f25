//! Queues of entries: many threads add entries, and one takes all.

pub mod node;

use core::ptr::NonNull;

use self::node::{Node, Operation, Target};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{CachePadded, const_new, order};

/// An entry of a node, which has one for each operation: the node's address, with the operation in
/// the lowest bit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Link(NonNull<Node>);

impl Link {
    /// The node's entry for this operation.
    #[inline]
    #[must_use]
    pub fn new(node: NonNull<Node>, operation: Operation) -> Self {
        const { assert!(align_of::<Node>() > 1) };
        Self(node.map_addr(|address| address | operation as usize))
    }

    /// What it was made of.
    #[inline]
    #[must_use]
    pub fn parts(self) -> (NonNull<Node>, Operation) {
        let is_remove = self.0.addr().get() & 1 != 0;
        let node = self.0.as_ptr().map_addr(|address| address & !1);
        let operation = if is_remove { Operation::Remove } else { Operation::Insert };
        // SAFETY: a node's address without its lowest bit, which the alignment leaves free, is not
        // 0.
        (unsafe { NonNull::new_unchecked(node) }, operation)
    }

    fn from_ptr(pointer: *mut Node) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    fn as_ptr(link: Option<Self>) -> *mut Node {
        link.map_or(core::ptr::null_mut(), |link| link.0.as_ptr())
    }

    /// The entry behind this one.
    ///
    /// # Safety
    ///
    /// The caller has this entry.
    #[inline]
    pub(super) unsafe fn next(self) -> Option<Self> {
        let (node, operation) = self.parts();
        // SAFETY: the node of an entry that was taken stays until the entry was settled, and the
        // entry is the caller's (contract of this function).
        unsafe { node.as_ref().next(operation) }
    }

    /// Puts an entry behind this one.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    #[inline]
    pub(super) unsafe fn set_next(self, next: Option<Self>) {
        let (node, operation) = self.parts();
        // SAFETY: the node of the entry stays until it is settled, and the entry is the caller's
        // (contract of this function).
        unsafe { node.as_ref().set_next(operation, next) };
    }
}

/// Where entries wait.
///
/// # Safety
///
/// An entry that was put in is given out once. Everything before it was put in happens before it is
/// given out. If its [`push`](Self::push) happens before a call of [`take`](Self::take), that call
/// gives it out.
pub unsafe trait Queue {
    /// Puts an entry in.
    ///
    /// # Safety
    ///
    /// The entry is in no queue, and its node exists until the entry is given out, which happens
    /// before the queue's end.
    unsafe fn push(&self, link: Link);

    /// Takes all entries out, in one or several chains.
    fn take(&self, each: impl FnMut(Chain));

    /// Takes the entries that were pushed on the calling core, if they are separate from the
    /// others; otherwise all entries.
    fn take_own(&self, each: impl FnMut(Chain)) {
        self.take(each);
    }

    /// Whether the queue is empty. It may always return false, for example if a check would take
    /// longer than reading a clock.
    fn is_empty(&self) -> bool {
        false
    }

    /// Whether many entries, about [`MANY`], were pushed on the calling core since they were last
    /// taken, or since this last returned true. A queue may always return false; its entries then
    /// wait for a reader, or for the timer.
    fn is_long(&self) -> bool {
        false
    }
}

/// From this many entries of one core on, a thread that drops an item drains the queue: enough for
/// the lock to be a small part of the work, and few enough to be in that core's cache.
pub const MANY: u32 = 512;

/// Reading the queues of this many cores takes about as long as reading a clock.
pub(super) const FEW: usize = 8;

/// An approximate count of pushed entries: two threads that count at the same time may be counted
/// as one.
#[derive(Debug)]
pub(super) struct Length(AtomicU32);

impl Length {
    const_new! {
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// There is another one, which the model checker leaves out to save work.
    #[inline]
    pub fn count(&self) {
        if !cfg!(loom) {
            // Relaxed, both: an approximate count is enough. It needs no read-modify-write, which
            // would cost as much as queueing the entry.
            let length = self.0.load(Ordering::Relaxed);
            self.0.store(length.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Whether there are many; if so, the count is reset. For the model checker one is enough.
    #[inline]
    pub fn is_long(&self) -> bool {
        if cfg!(loom) {
            return true;
        }
        // Relaxed: as above.
        let is_long = self.0.load(Ordering::Relaxed) >= MANY;
        if is_long {
            self.reset();
        }
        is_long
    }

    /// The entries were taken: counts from 0 again.
    #[inline]
    pub fn reset(&self) {
        if !cfg!(loom) {
            self.0.store(0, Ordering::Relaxed); // Relaxed: as above
        }
    }
}

/// Entries that were taken out of a queue.
#[derive(Debug)]
pub struct Chain(Option<Link>);

impl Chain {
    /// Creates a chain that begins with this entry; all of its entries belong to the caller.
    pub(super) fn new(first: Option<Link>) -> Self {
        Self(first)
    }
}

impl Iterator for Chain {
    type Item = Link;

    #[inline]
    fn next(&mut self) -> Option<Link> {
        let link = self.0?;
        // SAFETY: by `Chain::new`'s contract all entries from the first on are the chain's, and
        // this one has not been given out yet.
        self.0 = unsafe { link.next() };
        Some(link)
    }
}

/// What a drain did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Entries that it took out of the queue.
    pub entries: u64,
    /// Operations that it applied: an entry's operation may have been cancelled.
    pub applied: u64,
}

/// Entries that are being settled. If that panics, the remaining ones go back into the queue.
struct Rest<'a, Q: Queue> {
    queue: &'a Q,
    chain: Chain,
}

impl<Q: Queue> Drop for Rest<'_, Q> {
    fn drop(&mut self) {
        for link in self.chain.by_ref() {
            // SAFETY: the entry was taken out and not settled. So it is in no queue, and its node
            // is valid: the node is marked as used.
            unsafe { self.queue.push(link) };
        }
    }
}

/// Takes all entries out of a queue, and applies their operations.
///
/// # Safety
///
/// One thread at a time drains the queue: usually one that has the lock of the structure to which
/// the target belongs.
pub unsafe fn drain<Q: Queue>(queue: &Q, target: &mut impl Target) -> Drained {
    let mut drained = Drained::default();
    // SAFETY: `take` gives out entries that are this thread's; no other thread drains the queue
    // (contract of this function).
    queue.take(|chain| unsafe { settle(queue, chain, target, &mut drained) });
    drained
}

/// The same with entries that were put in on the calling core, if they are apart from the others:
/// an object's entries need not be taken together.
///
/// # Safety
///
/// As for [`drain`].
pub unsafe fn drain_own<Q: Queue>(queue: &Q, target: &mut impl Target) -> Drained {
    let mut drained = Drained::default();
    // SAFETY: `take_own` gives out entries that are this thread's; no other thread drains the queue
    // (contract of this function).
    queue.take_own(|chain| unsafe { settle(queue, chain, target, &mut drained) });
    drained
}

/// # Safety
///
/// As for [`drain`]; the chain was taken out of the queue.
unsafe fn settle<Q: Queue>(
    queue: &Q,
    chain: Chain,
    target: &mut impl Target,
    drained: &mut Drained,
) {
    let mut rest = Rest { queue, chain };
    for link in rest.chain.by_ref() {
        drained.entries += 1;
        // SAFETY: the chain has given the entry out, and no other thread applies entries of this
        // queue (contract of this function).
        drained.applied += u64::from(unsafe { Node::settle(link, target) });
    }
}

/// One queue for all threads: the simplest, for any structure.
#[derive(Debug)]
pub struct Global(CachePadded<Entries>);

#[derive(Debug)]
struct Entries {
    head: AtomicPtr<Node>,
    length: Length,
}

impl Global {
    const_new! {
        /// Creates one without entries.
        pub fn new() -> Self {
            let head = AtomicPtr::new(core::ptr::null_mut());
            Self(CachePadded(Entries { head, length: Length::new() }))
        }
    }

    /// Puts in a chain of entries that ends with `last`.
    ///
    /// # Safety
    ///
    /// As for [`Queue::push`], of each.
    #[inline]
    pub(super) unsafe fn push_chain(&self, first: Link, last: Link) {
        // Relaxed, here and on failure: the compare-and-swap decides, and the head is not followed.
        let mut head = self.0.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the last entry is in no queue (contract of this function), and no other
            // thread finds it before the compare-and-swap below.
            unsafe { last.set_next(Link::from_ptr(head)) };
            let new = Link::as_ptr(Some(first));
            // Release: partner of the Acquire in `take_all`.
            let release = order!(Release, "ldu-push");
            match self.0.head.compare_exchange_weak(head, new, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Takes all entries, the last that came first.
    #[inline]
    pub(super) fn take_all(&self) -> Chain {
        // Relaxed: earlier writes are seen, and concurrent ones need not be. (The model checker
        // misses a collision of a load with another thread's compare-and-swap if that thread
        // executes a load before it.)
        if !cfg!(loom) && self.0.head.load(Ordering::Relaxed).is_null() {
            return Chain(None);
        }
        self.0.length.reset();
        // Acquire: partner of the Release in `push_chain`.
        let acquire = order!(Acquire, "ldu-take");
        Chain(Link::from_ptr(self.0.head.swap(core::ptr::null_mut(), acquire)))
    }
}

// SAFETY: entries are added at the head, each once, by a Release; the Acquire of the head takes all
// of them, which a later one does not find again.
unsafe impl Queue for Global {
    #[inline]
    unsafe fn push(&self, link: Link) {
        self.0.length.count();
        // SAFETY: the entry is in no queue, and its node stays until it is taken out (contract of
        // this function); alone it is a chain.
        unsafe { self.push_chain(link, link) };
    }

    #[inline]
    fn take(&self, mut each: impl FnMut(Chain)) {
        each(self.take_all());
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.head.load(Ordering::Relaxed).is_null() // Relaxed: what is put in meanwhile need not be seen
    }

    #[inline]
    fn is_long(&self) -> bool {
        self.0.length.is_long()
    }
}

impl Default for Global {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Link").finish_non_exhaustive()
    }
}
