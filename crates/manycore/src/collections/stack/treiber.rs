//! `treiber`: a stack without locks.
//!
//! # Idea
//!
//! ```text
//!  head -> newest -> ... -> oldest          push: a new node before the head, by compare-and-swap
//!                                           pop: the head skips the newest, likewise
//! ```
//!
//! A thread that pops reads the link of a node that another thread may pop at the same time. If the
//! other thread freed the node, the first would read freed memory. If the node's memory were reused
//! for a new node at the head, the compare-and-swap would not notice, and install an old link (the
//! ABA problem). So nodes are retired, in sections of a [domain](crate::reclaim): as long as a
//! thread that may have seen a node is in a section, the node's memory is not reused.
//!
//! # Source
//!
//! R. K. Treiber, "Systems Programming: Coping with Parallelism", IBM 1986, where a counter beside
//! the head prevents ABA, and nodes are never freed. The short wait after a failed compare-and-swap
//! is from D. Hendler, N. Shavit and L. Yerushalmi, "A scalable lock-free stack algorithm", SPAA
//! 2004, where pairs of threads also exchange values without the stack; that is not done here.
//!
//! # Memory order
//!
//! A push releases its node, and a pop acquires the head before it reads the node. The head is
//! changed only by read-modify-writes. So a thread that finds a node there after others were popped
//! still acquires from the thread that pushed it. A node's link and value do not change while
//! others can find it; its value belongs to the thread whose compare-and-swap took the node out.
//!
//! An operation takes effect with its compare-and-swap, a pop that finds nothing with its read of
//! the head.
//!
//! # Cost
//!
//! A push takes an allocation and a compare-and-swap, on one line for all threads; a pop takes a
//! compare-and-swap and a section. After a failed compare-and-swap a thread waits, twice as long
//! each time, so it does not disturb the others.
//!
//! # When not to use it
//!
//! Where threads contend all the time: they wait for one line, and a lock or flat combining is as
//! fast. Where the oldest value has to come first, or all values are taken together: use
//! [`TakeAll`](crate::collections::queue::TakeAll), which needs no sections.

use alloc::boxed::Box;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;

use crate::exhaust::exhaust;
use crate::reclaim::{self, Config, Domain};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, hint, mutation, order};

/// A stack without locks.
///
/// ```
/// use manycore::collections::stack::TreiberStack;
///
/// let stack = TreiberStack::default();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..3).for_each(|n| stack.handle().push(n)));
/// });
/// let mut handle = stack.handle();
/// let popped = [handle.pop(), handle.pop(), handle.pop(), handle.pop()];
/// assert_eq!(popped, [Some(2), Some(1), Some(0), None]);
/// ```
///
/// Invariant: the head leads through nodes that came from `Box`, newest first, to null.
pub struct TreiberStack<T> {
    head: CachePadded<AtomicPtr<Node<T>>>,
    domain: Domain,
}

struct Node<T> {
    /// Belongs to the node's owner: until the push to the pushing thread, and after the pop to the
    /// popping thread.
    value: UnsafeCell<ManuallyDrop<T>>,
    next: UnsafeCell<*mut Node<T>>,
}

// SAFETY: its value is its owner's, in one thread at a time (`T: Send`); the node itself any thread
// may free.
unsafe impl<T: Send> Send for Node<T> {}

// SAFETY: the stack owns the values, which its end drops in any thread.
unsafe impl<T: Send> Send for TreiberStack<T> {}
// SAFETY: a value passes from the thread that adds it to the one that takes it; two threads never
// refer to it at once.
unsafe impl<T: Send> Sync for TreiberStack<T> {}

/// How long a thread waits after its compare-and-swap has failed, in ticks: at first, and at most.
const PAUSE: core::ops::Range<u64> = 64..4096;

/// Waits after a failed compare-and-swap; the next wait is twice as long.
#[cold]
fn wait(pause: &mut u64) {
    hint::delay(*pause);
    *pause = (*pause * 2).min(PAUSE.end);
}

impl<T> TreiberStack<T> {
    /// Creates one without values; removed nodes wait in a domain with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { head: CachePadded(AtomicPtr::new(null_mut())), domain: Domain::new(config) }
    }

    /// Where nodes wait until no thread can read them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The calling thread's access to the stack.
    pub fn handle(&self) -> TreiberHandle<'_, T> {
        TreiberHandle { stack: self, handle: self.domain.register() }
    }
}

impl<T> Default for TreiberStack<T> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<T> Drop for TreiberStack<T> {
    fn drop(&mut self) {
        let mut node = self.head.load(Ordering::Relaxed); // Relaxed: no other thread has the stack
        exhaust(|| {
            if node.is_null() {
                return false;
            }
            // SAFETY: the node is from a box of `push`, and `&mut self` excludes other threads; no
            // link leads to popped nodes.
            let Node { value, next } = *unsafe { Box::from_raw(node) };
            node = next.into_inner();
            drop(ManuallyDrop::into_inner(value.into_inner()));
            true
        });
    }
}

impl<T> fmt::Debug for TreiberStack<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("TreiberStack").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to a [`TreiberStack`].
pub struct TreiberHandle<'a, T> {
    stack: &'a TreiberStack<T>,
    handle: reclaim::Handle<'a>,
}

impl<T> fmt::Debug for TreiberHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("TreiberHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<T: Send> TreiberHandle<'_, T> {
    /// Puts a value on top.
    pub fn push(&mut self, value: T) {
        let place = &self.stack.head;
        // Relaxed, here and on failure: the compare-and-swap decides, and the head is not followed.
        let mut head = place.load(Ordering::Relaxed);
        let value = UnsafeCell::new(ManuallyDrop::new(value));
        let node = Box::into_raw(Box::new(Node { value, next: UnsafeCell::new(head) }));
        let mut pause = PAUSE.start;
        loop {
            // Release: partner of the Acquire in `pop`.
            let release = order!(Release, "treiber-push");
            // Relaxed: as above.
            match place.compare_exchange_weak(head, node, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
            // SAFETY: no other thread knows the node: the compare-and-swap has not put it into the
            // stack.
            unsafe { (*node).next.with_mut(|next| *next = head) };
            wait(&mut pause);
        }
    }

    /// Takes the value on top.
    pub fn pop(&mut self) -> Option<T> {
        let place = &self.stack.head;
        let guard = self.handle.pin();
        let mut pause = PAUSE.start;
        loop {
            // Acquire: partner of the Release in `push`.
            let head = place.load(order!(Acquire, "treiber-pop"));
            // SAFETY: null, or a node to which the head led in this section: popped nodes are
            // retired, and not freed before the section's end.
            let node = unsafe { head.as_ref() }?;
            // SAFETY: a node's link is written before the node is inserted, and not while threads
            // may find it.
            let next = node.next.with(|next| unsafe { *next });
            let is_mistaken = mutation!("treiber-store");
            if is_mistaken {
                place.store(next, Ordering::Relaxed); // Relaxed: the mistake is another
            } else if place
                // Relaxed, both: a read-modify-write passes on the pushes of others; on failure,
                // the head is read again.
                .compare_exchange_weak(head, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
            {
                wait(&mut pause);
                continue;
            }
            // SAFETY: the compare-and-swap has taken the node out, which only one thread's does:
            // the value is this thread's, and is taken once.
            let value = node.value.with_mut(|value| unsafe { ManuallyDrop::take(&mut *value) });
            if !is_mistaken {
                // SAFETY: the node is from a box of `push`; no link leads to it, and the thread
                // that has removed it retires it. Its value, taken above, is a `ManuallyDrop`, and
                // not dropped with it.
                unsafe { guard.retire(head) };
            }
            drop(guard); // here, where a destructor that panics does not lose the value
            return Some(value);
        }
    }
}
