//! Memory for objects: free ones in lists by size, of the thread that freed them; what one has too many of goes to all.
//!
//! Objects are aligned to 32 bytes, so that one of up to 32 (its head, a key and a link) is on one line. No memory goes back
//! before the domain's end, so that a link to an object that was freed leads to memory all the same.

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use core::ptr::null_mut;

use crate::sync::CachePadded;
use crate::sync::array_of;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Sizes in steps of this up to [`FINE_MAX`], then powers of two up to [`SIZE_MAX`].
const STEP: usize = 32;
const FINE_MAX: usize = 512;
/// The largest object, its head included.
pub(crate) const SIZE_MAX: usize = 32 << 10;
const CLASSES: usize = FINE_MAX / STEP + (SIZE_MAX / FINE_MAX).ilog2() as usize;

/// Memory is asked for so much at a time.
const CHUNK: usize = 64 << 10;
const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

/// So many free objects of a size a thread keeps; then half of them go to the depot.
const KEPT: usize = 256;

fn class_of(size: usize) -> usize {
    if size <= FINE_MAX {
        size.div_ceil(STEP) - 1
    } else {
        FINE_MAX / STEP - 1 + size.div_ceil(FINE_MAX).next_power_of_two().ilog2() as usize
    }
}

fn size_of_class(class: usize) -> usize {
    let fine = FINE_MAX / STEP;
    if class < fine { (class + 1) * STEP } else { FINE_MAX << (class - fine + 1) }
}

/// How large the memory of an object of this size is; none if there is no such object.
#[cfg(not(loom))]
pub(crate) fn rounded(size: usize) -> Option<usize> {
    (size <= SIZE_MAX).then(|| size_of_class(class_of(size)))
}

/// What is in a free object.
struct Free {
    next: *mut Free,
    /// Of the first of a batch in the depot: the next batch.
    batch: *mut Free,
}

#[derive(Clone, Copy)]
struct List {
    first: *mut Free,
    length: usize,
}

/// One thread's free objects.
pub(crate) struct Pool {
    lists: [List; CLASSES],
    /// What is left of the chunk that was got last.
    rest: *mut u8,
    rest_bytes: usize,
}

// SAFETY: a pool is passed on as a whole; what is in it belongs to nobody else.
unsafe impl Send for Pool {}

impl Pool {
    pub fn new() -> Self {
        let empty = List { first: null_mut(), length: 0 };
        Self { lists: [empty; CLASSES], rest: null_mut(), rest_bytes: 0 }
    }

    /// Memory for an object of so many bytes.
    #[inline]
    pub fn take(&mut self, size: usize, depot: &Depot) -> *mut u8 {
        let class = class_of(size);
        let list = &mut self.lists[class];
        if list.first.is_null() {
            return self.refill(class, depot);
        }
        let free = list.first;
        // SAFETY: what is on the list is this thread's, and begins with a `Free`.
        list.first = unsafe { (*free).next };
        list.length -= 1;
        free.cast()
    }

    #[cold]
    fn refill(&mut self, class: usize, depot: &Depot) -> *mut u8 {
        let size = size_of_class(class);
        let batch = depot.take(class);
        if !batch.is_null() {
            // SAFETY: the batch is this thread's now.
            self.lists[class] = List { first: unsafe { (*batch).next }, length: KEPT / 2 - 1 };
            return batch.cast();
        }
        if self.rest_bytes < size {
            (self.rest, self.rest_bytes) = depot.new_chunk();
        }
        let place = self.rest;
        // SAFETY: within the chunk.
        self.rest = unsafe { place.add(size) };
        self.rest_bytes -= size;
        place
    }

    /// Takes back the memory of an object, which nobody has any more.
    #[inline]
    pub fn give(&mut self, object: *mut u8, size: usize, depot: &Depot) {
        let class = class_of(size);
        let list = &mut self.lists[class];
        let free = object.cast::<Free>();
        // SAFETY: the memory is this thread's, and large enough.
        unsafe { free.write(Free { next: list.first, batch: null_mut() }) };
        *list = List { first: free, length: list.length + 1 };
        if list.length > KEPT {
            self.give_batch(class, depot);
        }
    }

    /// Half of what there is, to whoever needs it.
    #[cold]
    fn give_batch(&mut self, class: usize, depot: &Depot) {
        let list = &mut self.lists[class];
        let first = list.first;
        let mut last = first;
        for _ in 1..KEPT / 2 {
            // SAFETY: the list is longer than that.
            last = unsafe { (*last).next };
        }
        // SAFETY: as above.
        unsafe {
            list.first = (*last).next;
            (*last).next = null_mut();
        }
        list.length -= KEPT / 2;
        depot.give(class, first);
    }
}

struct Chunk {
    next: *mut Chunk,
}

/// What a domain's threads have in common: batches of free objects, and all chunks.
pub(crate) struct Depot {
    batches: [CachePadded<AtomicPtr<Free>>; CLASSES],
    chunks: AtomicPtr<Chunk>,
    bytes: AtomicUsize,
}

impl Depot {
    pub fn new() -> Self {
        Self {
            batches: array_of!(CachePadded(AtomicPtr::new(null_mut())); CLASSES),
            chunks: AtomicPtr::new(null_mut()),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes that were ever asked for.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) // Relaxed: a statistic
    }

    /// A batch; null if there is none. Takes all and puts back the rest, because one alone may be another's by then.
    fn take(&self, class: usize) -> *mut Free {
        // Threads that have to ask for new memory come here for each object: they only read the line as long as nothing is there.
        // Relaxed: a hint.
        if self.batches[class].load(Ordering::Relaxed).is_null() {
            return null_mut();
        }
        // Acquire: partner of the Release in `give`.
        let first = self.batches[class].swap(null_mut(), Ordering::Acquire);
        if !first.is_null() {
            // SAFETY: the batches are this thread's now.
            let mut rest = unsafe { (*first).batch };
            while !rest.is_null() {
                // SAFETY: as above.
                let next = unsafe { (*rest).batch };
                self.give(class, rest);
                rest = next;
            }
        }
        first
    }

    fn give(&self, class: usize, batch: *mut Free) {
        let batches = &self.batches[class];
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = batches.load(Ordering::Relaxed);
        loop {
            // SAFETY: the batch is the caller's up to the line below.
            unsafe { (*batch).batch = head };
            // Release: partner of the Acquire in `take`.
            let release = Ordering::Release;
            match batches.compare_exchange_weak(head, batch, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// New memory, in the first line of which the chunk is noted.
    fn new_chunk(&self) -> (*mut u8, usize) {
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(CHUNK_LAYOUT) };
        if memory.is_null() {
            handle_alloc_error(CHUNK_LAYOUT);
        }
        self.bytes.fetch_add(CHUNK, Ordering::Relaxed); // Relaxed: a statistic
        let chunk = memory.cast::<Chunk>();
        // Relaxed, throughout: chunks are only followed at the domain's end.
        let mut head = self.chunks.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chunk is this thread's up to the line below.
            unsafe { chunk.write(Chunk { next: head }) };
            let relaxed = Ordering::Relaxed; // Relaxed: as above
            match self.chunks.compare_exchange_weak(head, chunk, relaxed, relaxed) {
                // SAFETY: within the chunk.
                Ok(_) => return (unsafe { memory.add(64) }, CHUNK - 64),
                Err(changed) => head = changed,
            }
        }
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        let mut chunk = self.chunks.load(Ordering::Relaxed); // Relaxed: nobody else is left
        while !chunk.is_null() {
            // SAFETY: from `new_chunk`, and no object is used any more.
            unsafe {
                let next = (*chunk).next;
                dealloc(chunk.cast(), CHUNK_LAYOUT);
                chunk = next;
            }
        }
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
        let depot = Depot::new();
        let (mut one, mut other) = (Pool::new(), Pool::new());
        let objects: alloc::vec::Vec<_> = (0..1000).map(|_| one.take(24, &depot)).collect();
        let bytes = depot.bytes();
        objects.into_iter().for_each(|object| other.give(object, 24, &depot));
        (0..740).for_each(|_| assert!(!one.take(24, &depot).is_null()));
        assert_eq!(depot.bytes(), bytes);
    }
}
