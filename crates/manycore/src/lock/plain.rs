//! Locks used without a node, and those among them that can live in the bytes of a
//! `pthread_mutex_t`.

use crate::sync::{Deadline, hint};
use crate::{LockInfo, RawLock};

/// A lock that is used without a node: it has no queue, or takes its nodes from
/// [`sync::node`](crate::sync::node).
///
/// # Safety
///
/// As for [`RawLock`]. Also, a value of zero bytes is an unlocked lock, whose memory may be freed
/// while no thread uses the lock.
pub unsafe trait PlainLock: RawLock + Sized {
    /// The lock's row in `manycore locks`.
    const INFO: LockInfo;

    /// Acquires the lock if it is free; returns whether it did.
    fn try_acquire(&self) -> bool;

    /// Acquires the lock after [`try_acquire`](Self::try_acquire) has failed.
    fn acquire_contended(&self);

    /// Acquires the lock unless the deadline passes first; returns whether it did.
    ///
    /// The default polls, with sleeps that grow up to a millisecond: for locks whose waiters cannot
    /// leave the queue.
    fn acquire_until(&self, deadline: Deadline) -> bool {
        let mut pause_ns = 1_000;
        while !self.try_acquire() {
            if deadline.has_passed() {
                return false;
            }
            hint::sleep(pause_ns);
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
        true
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The lock is held by an acquisition through this trait.
    unsafe fn release(&self);

    /// Acquires the lock.
    #[inline]
    fn acquire(&self) {
        if !self.try_acquire() {
            self.acquire_contended();
        }
    }
}

/// A lock that is small enough to fit into the bytes of another type, such as a `pthread_mutex_t`.
/// The others are *library-only*.
///
/// The registry implements it for each lock on its inline list, with a read of the size.
pub trait InlineLock: PlainLock {}

/// The largest size of an inline lock, in bytes; its alignment is at most half of that.
pub const INLINE_SIZE: usize = 16;

/// Both ways of waiting, for a lock with a method `wait`, which takes an optional deadline and
/// returns whether it has acquired the lock. To be used in its [`PlainLock`].
macro_rules! waits_with_deadline {
    () => {
        #[cold]
        fn acquire_contended(&self) {
            self.wait(None);
        }

        #[cold]
        fn acquire_until(&self, deadline: $crate::sync::Deadline) -> bool {
            $crate::lock::PlainLock::try_acquire(self) || self.wait(Some(deadline))
        }
    };
}
pub(super) use waits_with_deadline;

/// Implements [`RawLock`] for a plain lock that uses no node of its callers.
macro_rules! without_node {
    ($lock:ty $(, $parameter:ident: $bound:path)?) => {
        // SAFETY: `PlainLock` requires the same as `RawLock`, and this forwards to it. The node is
        // `()`, to which no lock has a reference.
        unsafe impl$(<$parameter: $bound>)? $crate::RawLock for $lock {
            type Node = ();

            fn new() -> Self {
                <$lock>::new()
            }

            unsafe fn lock(&self, _node: &mut ()) {
                $crate::lock::PlainLock::acquire(self);
            }

            unsafe fn try_lock(&self, _node: &mut ()) -> bool {
                $crate::lock::PlainLock::try_acquire(self)
            }

            unsafe fn unlock(&self, _node: &mut ()) {
                // SAFETY: the lock is held by `lock` or `try_lock` above (contract of
                // `RawLock::unlock`), which acquire it through `PlainLock`.
                unsafe { $crate::lock::PlainLock::release(self) }
            }
        }

        $crate::lock::plain::lock_api_form!($lock $(, $parameter: $bound)?);
    };
}
pub(super) use without_node;

/// Implements the interface of a `lock_api` raw mutex for a lock, with deadlines. Loom's atomics
/// have no constants.
macro_rules! lock_api_form {
    ($lock:ty $(, $parameter:ident: $bound:path)?) => {
        #[cfg(all(feature = "lock_api", not(loom)))]
        // SAFETY: `PlainLock` excludes and orders as `lock_api` requires. `GuardSend` is right,
        // since a release reads nothing of the thread that acquired.
        unsafe impl$(<$parameter: $bound>)? lock_api::RawMutex for $lock {
            #[allow(clippy::declare_interior_mutable_const, reason = "lock_api has it so")]
            const INIT: Self = <$lock>::new();

            type GuardMarker = lock_api::GuardSend;

            #[inline]
            fn lock(&self) {
                $crate::lock::PlainLock::acquire(self);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                $crate::lock::PlainLock::try_acquire(self)
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the lock is held in the current context (contract of
                // `lock_api::RawMutex::unlock`), by an acquisition above through `PlainLock`.
                unsafe { $crate::lock::PlainLock::release(self) }
            }
        }

        // Without an operating system there is no clock against which a deadline could be checked.
        #[cfg(all(
            feature = "lock_api",
            any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare)))
        ))]
        // SAFETY: `acquire_until` acquires the lock if and only if it returns true, by `PlainLock`,
        // as `lock_api` requires of these.
        unsafe impl$(<$parameter: $bound>)? lock_api::RawMutexTimed for $lock {
            type Duration = core::time::Duration;
            type Instant = $crate::sync::Moment;

            fn try_lock_for(&self, timeout: core::time::Duration) -> bool {
                $crate::lock::PlainLock::try_acquire(self)
                    || $crate::lock::PlainLock::acquire_until(self, $crate::sync::Deadline::after(timeout))
            }

            fn try_lock_until(&self, deadline: $crate::sync::Moment) -> bool {
                $crate::lock::PlainLock::acquire_until(self, deadline.into())
            }
        }
    };
}
pub(super) use lock_api_form;
