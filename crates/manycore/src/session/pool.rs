//! Memory for objects of all sizes: see [`object_pool`](crate::object_pool).
//!
//! Objects are aligned to 32 bytes, so that an object of up to 32 bytes (its head, a key and a
//! link) is on one line.

use alloc::boxed::Box;

use crate::object_pool::{BumpTail, Chunks, GlobalFreeList, List, Memory};
use crate::sync::CachePadded;
use crate::sync::array_of;

/// The difference between sizes up to [`FINE_MAX`]. Larger sizes are powers of two, up to
/// [`SIZE_MAX`].
const STEP: usize = 32;
const FINE_MAX: usize = 512;
/// The largest object, its head included.
pub(crate) const SIZE_MAX: usize = 32 << 10;
const CLASSES: usize = FINE_MAX / STEP + (SIZE_MAX / FINE_MAX).ilog2() as usize;

pub(crate) const fn class_of(size: usize) -> usize {
    if size <= FINE_MAX {
        size.div_ceil(STEP) - 1
    } else {
        FINE_MAX / STEP - 1 + size.div_ceil(FINE_MAX).next_power_of_two().ilog2() as usize
    }
}

pub(crate) const fn size_of_class(class: usize) -> usize {
    let fine = FINE_MAX / STEP;
    if class < fine { (class + 1) * STEP } else { FINE_MAX << (class - fine + 1) }
}

/// The bytes of memory for an object of this size; none if there is no such object.
#[cfg(not(loom))]
pub(crate) fn rounded(size: usize) -> Option<usize> {
    (size <= SIZE_MAX).then(|| size_of_class(class_of(size)))
}

/// One thread's free objects.
pub(crate) struct Pool {
    lists: [List; CLASSES],
    rest: BumpTail,
}

// SAFETY: the memory on its lists and of its rest is in no other use, so that it may go to another
// thread with the pool.
unsafe impl Send for Pool {}

impl Pool {
    pub fn new() -> Self {
        Self { lists: [List::EMPTY; CLASSES], rest: BumpTail::NONE }
    }

    /// Memory for an object of this many bytes.
    #[inline]
    pub fn take(&mut self, size: usize, shared_pool: &SharedPool) -> *mut u8 {
        let class = class_of(size);
        let list = &mut self.lists[class];
        let (size, batches) = (size_of_class(class), &shared_pool.batches[class]);
        list.take()
            .unwrap_or_else(|| list.refill(size, batches, &mut self.rest, &shared_pool.chunks))
    }

    /// Takes back the memory of an object.
    ///
    /// # Safety
    ///
    /// [`take`](Self::take) has returned the memory, for this size and from this shared pool, to
    /// this pool or another. The memory is not used any more.
    #[inline]
    pub unsafe fn give(&mut self, object: *mut u8, size: usize, shared_pool: &SharedPool) {
        let class = class_of(size);
        // SAFETY: the smallest class is larger than a `Free`, and all are aligned to 32 bytes; the
        // chunks stay as long as the shared pool, whose batches these are. No other use is the
        // contract of this function.
        unsafe { self.lists[class].give(object, &shared_pool.batches[class]) };
    }
}

/// The shared part of a domain's pools: batches of free objects, and all chunks.
pub(crate) struct SharedPool {
    batches: [CachePadded<GlobalFreeList>; CLASSES],
    chunks: Chunks,
}

impl SharedPool {
    pub fn new() -> Self {
        Self {
            batches: array_of!(CachePadded(GlobalFreeList::new()); CLASSES),
            chunks: Chunks::new(),
        }
    }

    /// Creates one that allocates from memory of the caller's.
    pub fn with_memory(memory: Box<dyn Memory>) -> Self {
        Self { chunks: Chunks::with_memory(Some(memory)), ..Self::new() }
    }

    /// Bytes that were ever asked for.
    pub fn bytes(&self) -> usize {
        self.chunks.bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_class_that_is_large_enough() {
        for size in 1..=SIZE_MAX {
            let class = class_of(size);
            assert!(class < CLASSES && size_of_class(class) >= size, "{size}");
            assert!(class == 0 || size_of_class(class - 1) < size, "{size}");
        }
    }

    #[test]
    fn what_one_thread_frees_another_gets() {
        let shared_pool = SharedPool::new();
        let (mut one, mut other) = (Pool::new(), Pool::new());
        let objects: alloc::vec::Vec<_> = (0..1000).map(|_| one.take(24, &shared_pool)).collect();
        let bytes = shared_pool.bytes();
        // SAFETY: the loop has taken each of them from this shared pool, with this size, and no
        // code uses them.
        objects.into_iter().for_each(|object| unsafe { other.give(object, 24, &shared_pool) });
        (0..740).for_each(|_| assert!(!one.take(24, &shared_pool).is_null()));
        assert_eq!(shared_pool.bytes(), bytes);
    }
}
