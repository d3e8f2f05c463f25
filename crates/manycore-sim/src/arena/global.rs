//! The allocator of every program that simulates: the arena's heap while simulated code runs, else
//! the system's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

use super::in_use::{allocated, freed};
use super::{Heap, contains};

thread_local! {
    /// The heap of the simulated code that runs on this thread of the host; null while none does.
    static HEAP: Cell<*mut Heap> = const { Cell::new(null_mut()) };
}

#[global_allocator]
static ALLOCATOR: Hook = Hook;

struct Hook;

/// Runs simulated code, which allocates from `heap`. The heap outlives the call, and during the
/// call only [`host`] may use it otherwise.
pub(crate) fn simulated<R>(heap: *mut Heap, f: impl FnOnce() -> R) -> R {
    with(heap, f)
}

/// Runs code of the simulator within simulated code: its allocations are the host's.
pub(crate) fn host<R>(f: impl FnOnce() -> R) -> R {
    with(null_mut(), f)
}

fn with<R>(heap: *mut Heap, f: impl FnOnce() -> R) -> R {
    struct Restore(*mut Heap);
    impl Drop for Restore {
        fn drop(&mut self) {
            HEAP.set(self.0);
        }
    }
    let _restore = Restore(HEAP.replace(heap));
    f()
}

// SAFETY: each allocation is the system's or the arena's, by its address, from first to last.
unsafe impl GlobalAlloc for Hook {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = HEAP.get();
        if heap.is_null() {
            // SAFETY: no simulation runs on this thread, so that the system allocates; the layout
            // has a size (contract of `GlobalAlloc`).
            return unsafe { System.alloc(layout) };
        }
        in_arena(heap, layout)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if contains(block.addr()) {
            // SAFETY: the block is in the arena, and so was allocated there with this layout
            // (contract of `GlobalAlloc`).
            return unsafe { free_in_arena(block, layout) };
        }
        // SAFETY: the block is not in the arena, and so was allocated by the system with this
        // layout (contract of `GlobalAlloc`).
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let heap = HEAP.get();
        if heap.is_null() {
            // SAFETY: no simulation runs on this thread, so that the system allocates; the layout
            // has a size (contract of `GlobalAlloc`).
            return unsafe { System.alloc_zeroed(layout) };
        }
        let block = in_arena(heap, layout);
        if !block.is_null() {
            // SAFETY: the arena has just allocated the block with at least this size, and no other
            // code has it.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if HEAP.get().is_null() && !contains(block.addr()) {
            // SAFETY: the block is not in the arena, and so was allocated by the system with this
            // layout; the size is not 0 (contract of `GlobalAlloc`).
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller's size fits the alignment; the blocks are distinct, and both contain
        // the copied bytes.
        unsafe {
            let layout_after = Layout::from_size_align_unchecked(size, layout.align());
            let moved = self.alloc(layout_after);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// The number of bytes that the simulated code on this thread has allocated and not freed; 0 if no
/// simulated code runs.
pub(crate) fn in_use() -> usize {
    let heap = HEAP.get();
    // SAFETY: `simulated` has set the heap, which is valid as long as it is set, and only simulated
    // code on this thread uses it.
    if heap.is_null() { 0 } else { unsafe { (*heap).in_use() } }
}

/// Zeroed memory, on lines of its own, that exists as long as the simulation on this thread; `None`
/// if no simulation runs.
pub(crate) fn lasting(bytes: usize) -> Option<NonNull<u8>> {
    let heap = HEAP.get();
    let layout = Layout::from_size_align(bytes, super::LINE).expect("a size of memory");
    if heap.is_null() {
        return None;
    }
    // SAFETY: `simulated` has set the heap, which is valid as long as it is set, and only simulated
    // code on this thread uses it. The memory is not counted as in use: it ends with the heap.
    let block = host(|| unsafe { (*heap).allocate(layout) }).expect("simulated memory");
    // SAFETY: the arena has just allocated the block with at least this size, and no other code has
    // it.
    unsafe { block.write_bytes(0, bytes) };
    Some(block)
}

#[cold]
fn in_arena(heap: *mut Heap, layout: Layout) -> *mut u8 {
    // SAFETY: the heap is valid as long as it is set, and only simulated code on this thread uses
    // it: `host` keeps simulated code out.
    let block = host(|| unsafe { (*heap).allocate(layout) });
    allocated();
    block.map_or(null_mut(), |block| block.as_ptr())
}

/// # Safety
///
/// As for `dealloc`.
#[cold]
unsafe fn free_in_arena(block: *mut u8, layout: Layout) {
    let heap = HEAP.get();
    if !heap.is_null() {
        // SAFETY: the heap is valid as long as it is set, and only simulated code on this thread
        // uses it. The heap belongs to this simulation; a block of an earlier one serves as well.
        host(|| unsafe { (*heap).free(block, layout) });
    }
    freed(block.addr());
}
