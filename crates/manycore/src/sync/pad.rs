//! A value alone on its cache lines.

use core::ops::{Deref, DerefMut};

use manycore_traits::RawLock;

/// Aligns a value to 128 bytes: two lines of 64, because adjacent-line prefetchers fetch lines in
/// pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for CachePadded<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> CachePadded<T> {
    /// The value without the padding.
    pub fn into_inner(self) -> T {
        self.0
    }
}

// SAFETY: all is left to the lock inside, which excludes and orders by `RawLock`'s contract.
unsafe impl<L: RawLock> RawLock for CachePadded<L> {
    type Node = L::Node;

    fn new() -> Self {
        Self(L::new())
    }

    #[inline]
    unsafe fn lock(&self, node: &mut L::Node) {
        // SAFETY: the caller keeps the contract of this method, which is that of the inner lock's
        // method of the same name.
        unsafe { self.0.lock(node) };
    }

    #[inline]
    unsafe fn try_lock(&self, node: &mut L::Node) -> bool {
        // SAFETY: the caller keeps the contract of this method, which is that of the inner lock's
        // method of the same name.
        unsafe { self.0.try_lock(node) }
    }

    #[inline]
    unsafe fn unlock(&self, node: &mut L::Node) {
        // SAFETY: the caller keeps the contract of this method, which is that of the inner lock's
        // method of the same name.
        unsafe { self.0.unlock(node) };
    }
}
