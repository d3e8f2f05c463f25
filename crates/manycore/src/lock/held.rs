//! A lock that is held, and released at the end even of a section that panics.

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
        // SAFETY: the node is borrowed until the lock is released, when this is dropped. It must not be forgotten: in this crate
        // nobody does.
        unsafe { lock.lock(node) };
        Self { lock, node }
    }

    /// Acquires the lock if that takes no waiting.
    #[inline]
    pub fn try_new(lock: &'a L, node: &'a mut L::Node) -> Option<Self> {
        // SAFETY: as above.
        let acquired = unsafe { lock.try_lock(node) };
        acquired.then(|| Self { lock, node })
    }
}

impl<L: RawLock> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: acquired with this node by whoever made this.
        unsafe { self.lock.unlock(self.node) }
    }
}
