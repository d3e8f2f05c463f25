//! A lock that is held, and that is released even if the section panics.

use crate::RawLock;

/// An acquisition, which ends when it is dropped.
#[must_use = "a lock is released when this is dropped"]
pub(crate) struct Held<'a, L: RawLock> {
    lock: &'a L,
    node: &'a mut L::Node,
}

impl<'a, L: RawLock> Held<'a, L> {
    /// Acquires the lock.
    #[inline]
    pub fn new(lock: &'a L, node: &'a mut L::Node) -> Self {
        // SAFETY: the node is mutably borrowed for as long as `self` lives, so it neither moves nor
        // serves another acquisition before `drop` releases the lock. `Held` is not visible outside
        // of this crate, which forgets none.
        unsafe { lock.lock(node) };
        Self { lock, node }
    }

    /// Acquires the lock if that needs no wait.
    #[inline]
    pub fn try_new(lock: &'a L, node: &'a mut L::Node) -> Option<Self> {
        // SAFETY: if the attempt succeeds, `self` borrows the node until `drop` releases the lock,
        // as in `new`; if it fails, the lock keeps no reference to the node.
        let acquired = unsafe { lock.try_lock(node) };
        acquired.then(|| Self { lock, node })
    }
}

impl<L: RawLock> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new` or `try_new` has acquired the lock with this node, and nothing else
        // releases it.
        unsafe { self.lock.unlock(self.node) }
    }
}
