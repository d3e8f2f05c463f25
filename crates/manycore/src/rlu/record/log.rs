//! Committed copies, until their memory can be used again.
//!
//! ```text
//!   try_lock        commit                   write back                   a later write back
//!      |               |                         |                                     |
//!      v               v                         v                                     v
//!   a session's  --> Log: the object is  -----> Limbo: no thread can find the   ----> the pool
//!                    locked, the copy is        copy, but sessions may have it
//!                    what later sessions see
//! ```

use alloc::vec::Vec;

use super::object::{Dying, Header};
use crate::RawLock;
use crate::lock::Futex;
use crate::session::object::FREED;
use crate::sync::cell::UnsafeCell;

/// Copies that a thread has committed and that are not written back yet. A thread that has the lock
/// may write them back. The lock must not be taken in a session.
pub(in crate::rlu) struct Log {
    lock: Futex,
    committed: UnsafeCell<Committed>,
}

#[derive(Default)]
pub(in crate::rlu) struct Committed {
    pub copies: Vec<*mut Header>,
    /// The stamp of the last commit.
    pub stamp: u64,
    /// How many commits.
    pub commits: usize,
}

// SAFETY: `committed` is reached through `locked` only, with the lock held; the copies to which it
// leads are its owner's to write back, as the module's page says, in any thread.
unsafe impl Sync for Log {}

/// Unlocks the log when it is dropped, for example by a panic of the callback for stalls.
struct Locked<'l>(&'l Futex);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: `Log::with` or `Log::try_with` has acquired the lock for the one `Locked` that
        // there is at a time.
        unsafe { self.0.unlock(&mut ()) };
    }
}

impl Log {
    pub fn new() -> Self {
        Self { lock: Futex::new(), committed: UnsafeCell::new(Committed::default()) }
    }

    /// Runs `f` with the committed copies. Waits for another thread that does so.
    pub fn with<R>(&self, f: impl FnOnce(&mut Committed) -> R) -> R {
        // SAFETY: the lock has no node to mind; `Locked`, made next in `locked`, releases it.
        unsafe { self.lock.lock(&mut ()) };
        self.locked(f)
    }

    /// Runs `f` with what was committed, unless another thread does so.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut Committed) -> R) -> Option<R> {
        // SAFETY: the lock has no node to mind; if the attempt succeeds, `Locked`, made next in
        // `locked`, releases it.
        unsafe { self.lock.try_lock(&mut ()) }.then(|| self.locked(f))
    }

    /// Takes out the objects that own their values and were freed, where freeing was deferred. Does
    /// not take the lock, which a thread that panicked may have left locked.
    ///
    /// # Safety
    ///
    /// The domain ends: no other thread uses the log.
    pub unsafe fn take_freed(&self, dying: &mut Dying) {
        self.committed.with_mut(|committed| {
            // SAFETY: no other thread uses the log, so that the copies and the lists are this
            // thread's (contract of this function).
            for copy in unsafe { &mut *committed }.copies.drain(..) {
                // SAFETY: a copy stays in its log until it is written back, and `copies` lists
                // those that are not.
                let copy = unsafe { &*copy };
                if copy.kind.drops && copy.has(FREED) {
                    // SAFETY: the object ended with this copy, which is the only record of its end.
                    // It belongs to the domain, and no thread uses it any more.
                    unsafe { dying.push(copy.master(), copy.kind) };
                }
            }
        });
    }

    fn locked<R>(&self, f: impl FnOnce(&mut Committed) -> R) -> R {
        let _locked = Locked(&self.lock);
        // SAFETY: the lock is held until `_locked` is dropped, and `committed` is reached here
        // only.
        self.committed.with_mut(|committed| f(unsafe { &mut *committed }))
    }
}

/// Copies that a thread has removed from their objects, the oldest first. Open sessions may have
/// found them before. This is no bag of [`reclaim`](crate::reclaim): copies return to their own
/// thread's pool, so no other thread has to find them, and none has a destructor. A copy takes 8
/// bytes here rather than 16, and no exchange.
#[derive(Default)]
pub(in crate::rlu) struct Limbo {
    copies: Vec<*mut Header>,
    /// The number of the oldest copies that were here before `stamp` was taken. Sessions that see
    /// commits up to `stamp` have not found these copies.
    ripening: usize,
    stamp: u64,
}

// SAFETY: no other thread may free a limbo's copies, and a limbo passes from thread to thread as a
// whole.
unsafe impl Send for Limbo {}

impl Limbo {
    pub fn push(&mut self, copy: *mut Header) {
        self.copies.push(copy);
    }

    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// The thread has taken a stamp, at a time when this many copies were here.
    pub fn ripens(&mut self, copies: usize, stamp: u64) {
        (self.ripening, self.stamp) = (copies, stamp);
    }

    /// Takes the unused copies, now that no session is open that may miss a commit of this stamp.
    pub fn take_ripe(&mut self, stamp: u64) -> impl Iterator<Item = *mut Header> {
        let ripe = if stamp < self.stamp { 0 } else { core::mem::take(&mut self.ripening) };
        self.copies.drain(..ripe)
    }
}
