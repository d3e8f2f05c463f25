//! Retry queues: a session that begins again after a conflict on an object waits in the object's
//! queue. Otherwise it would run into the same conflict with hundreds of others.
//!
//! Objects share queues, by their addresses. A session is at the head of at most one queue: it
//! waits for that position before it begins, and gives it up when it ends. So no thread waits in a
//! queue while it is at the head of one or has an open session. The exception is a thread with
//! nested sessions of two domains; because of it a wait ends after [`WAIT_MAX`]. The position is
//! only a hint: the locks of objects decide which session may write.

use alloc::boxed::Box;
use core::ptr::null_mut;
use core::time::Duration;

use crate::lock::{Adaptive, PlainLock};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{CachePadded, Deadline};

/// How many queues a domain has, once a session has met a conflict in it.
const QUEUES: usize = 256;

/// The longest wait in a queue: with hundreds of threads in a queue, each takes some microseconds.
const WAIT_MAX: Duration = Duration::from_millis(5);

type Queues = [CachePadded<Adaptive>; QUEUES];

/// Whether there are queues. They need a clock by which a wait can end. The model checker has none,
/// and kernels give the library no deadlines yet.
pub(crate) const HAS_RETRY_QUEUES: bool =
    cfg!(any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare))));

#[cfg(any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare))))]
fn after(duration: Duration) -> Deadline {
    Deadline::after(duration)
}

#[cfg(not(any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare)))))]
fn after(_duration: Duration) -> Deadline {
    unreachable!("no session waits for a turn here: see `HAS_RETRY_QUEUES`")
}

/// The queues of a domain.
pub(crate) struct RetryQueues {
    /// Null before the first conflict.
    queues: AtomicPtr<Queues>,
}

/// The position at the head of a queue, with the right to try first. When it is dropped, the next
/// session gets it.
pub(crate) struct QueueGuard<'q>(&'q Adaptive);

impl Drop for QueueGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: `RetryQueues::take` has acquired the lock for the one `QueueGuard` that it has
        // made.
        unsafe { self.0.release() };
    }
}

impl RetryQueues {
    pub fn new() -> Self {
        Self { queues: AtomicPtr::new(null_mut()) }
    }

    /// Waits in the queue of the object with this address; none if that takes too long. Only where
    /// there [are queues](HAS_RETRY_QUEUES).
    #[cold]
    pub fn take(&self, object: usize) -> Option<QueueGuard<'_>> {
        let queue = self.queue(object);
        (queue.try_acquire() || queue.acquire_until(after(WAIT_MAX))).then_some(QueueGuard(queue))
    }

    /// Whether a session is at the head of the queue of the object with this address.
    #[cold]
    pub fn is_busy(&self, object: usize) -> bool {
        self.queue(object).looks_held()
    }

    fn queue(&self, object: usize) -> &Adaptive {
        // Objects are some lines apart. A multiplication spreads their addresses (Knuth, vol. 3,
        // 6.4).
        let hash = (object as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.queues()[(hash >> (64 - QUEUES.ilog2())) as usize]
    }

    fn queues(&self) -> &Queues {
        // Acquire, and on failure: partner of the Release below.
        let mut queues = self.queues.load(Ordering::Acquire);
        if queues.is_null() {
            let made: Box<Queues> =
                Box::new(core::array::from_fn(|_| CachePadded(Adaptive::new())));
            let made = Box::into_raw(made);
            // Release: partner of the Acquires here, for the initialised locks.
            match self.queues.compare_exchange(queues, made, Ordering::Release, Ordering::Acquire) {
                Ok(_) => queues = made,
                Err(others) => {
                    // SAFETY: from the box above, and shown to no thread.
                    drop(unsafe { Box::from_raw(made) });
                    queues = others;
                }
            }
        }
        // SAFETY: a pointer that is not null was made by `queues`, by a box that is freed with
        // `self` only, which the result borrows.
        unsafe { &*queues }
    }
}

impl Drop for RetryQueues {
    fn drop(&mut self) {
        let queues = self.queues.load(Ordering::Relaxed); // Relaxed: no other thread is left
        if !queues.is_null() {
            // SAFETY: `queues` has made it by a box; guards borrow from `self`, so that none is
            // left.
            drop(unsafe { Box::from_raw(queues) });
        }
    }
}
