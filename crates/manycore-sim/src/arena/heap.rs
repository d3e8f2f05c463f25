//! The heap of the arena: each allocation goes to a chunk of the core that makes it.
//!
//! As in the allocators of real systems, cores do not share allocated lines or pages, so memory is
//! near the core that touches it first. Freed memory is reused by the core that freed it.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::{NonNull, null_mut};

use super::PAGE;

/// The sizes that chunks are cut into: four from each power of two to the next.
const CLASSES: [usize; 40] = classes();
const LARGEST: usize = CLASSES[CLASSES.len() - 1];
const CHUNK: usize = 64 << 10;

const fn classes() -> [usize; 40] {
    let mut sizes = [0; 40];
    let mut i = 0;
    while i < 8 {
        sizes[i] = 16 * (i + 1);
        i += 1;
    }
    while i < sizes.len() {
        sizes[i] = sizes[i - 4] * 2;
        i += 1;
    }
    sizes
}

/// The memory of one simulation.
pub(crate) struct Heap {
    next: usize,
    limit: usize,
    /// The core that allocates.
    pub(crate) core: usize,
    cores: Vec<[Class; CLASSES.len()]>,
    /// Bytes that are allocated, in whole blocks and pages.
    in_use: usize,
    /// Freed allocations of more than [`LARGEST`] bytes, by their size in pages.
    large: BTreeMap<usize, Vec<usize>>,
}

/// A core's blocks of one size.
#[derive(Clone, Copy)]
struct Class {
    /// Freed blocks; each begins with the address of the next.
    free: *mut usize,
    /// The rest of the current chunk.
    next: usize,
    end: usize,
}

impl Heap {
    pub(super) fn new(start: usize, limit: usize) -> Self {
        Self { next: start, limit, core: 0, cores: Vec::new(), in_use: 0, large: BTreeMap::new() }
    }

    /// Makes room for allocations by this many cores.
    pub(crate) fn set_cores(&mut self, cores: usize) {
        self.cores.resize(cores, [Class { free: null_mut(), next: 0, end: 0 }; CLASSES.len()]);
    }

    /// The end of the memory that was ever used.
    pub(super) fn end(&self) -> usize {
        self.next
    }

    /// The number of bytes that are allocated and not freed.
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Memory for an allocation; none if the arena is full.
    pub(super) fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let class = class_of(layout);
        let address = match class {
            Some(class) => self.block(class)?,
            None => self.pages(layout)?,
        };
        self.in_use += bytes(class, layout);
        NonNull::new(std::ptr::with_exposed_provenance_mut(address))
    }

    /// Takes an allocation back.
    ///
    /// # Safety
    ///
    /// The memory came from [`allocate`](Self::allocate) of this heap with this layout, and no code
    /// uses it.
    pub(super) unsafe fn free(&mut self, block: *mut u8, layout: Layout) {
        let class = class_of(layout);
        // The memory of an earlier simulation was not counted here.
        self.in_use = self.in_use.saturating_sub(bytes(class, layout));
        let Some(class) = class else {
            let pages = layout.size().div_ceil(PAGE);
            self.large.entry(pages).or_default().push(block.addr());
            return;
        };
        let class = &mut self.cores[self.core][class];
        let block = block.cast::<usize>();
        // SAFETY: no code uses the block; it is at least 16 bytes long and aligned to 16.
        unsafe { block.write(class.free.expose_provenance()) };
        class.free = block;
    }

    fn block(&mut self, class: usize) -> Option<usize> {
        let free = self.cores[self.core][class].free;
        if !free.is_null() {
            // SAFETY: a freed block begins with the address of the next.
            let next = unsafe { free.read() };
            self.cores[self.core][class].free = std::ptr::with_exposed_provenance_mut(next);
            return Some(free.addr());
        }
        let size = CLASSES[class];
        let mut blocks = self.cores[self.core][class];
        if blocks.end - blocks.next < size {
            let chunk = self.reserve(CHUNK, CHUNK)?;
            blocks = Class { next: chunk, end: chunk + CHUNK, ..blocks };
        }
        let block = blocks.next;
        blocks.next += size;
        self.cores[self.core][class] = blocks;
        Some(block)
    }

    fn pages(&mut self, layout: Layout) -> Option<usize> {
        let pages = layout.size().div_ceil(PAGE);
        if layout.align() <= PAGE {
            let freed = self.large.get_mut(&pages).and_then(Vec::pop);
            return freed.or_else(|| self.reserve(pages * PAGE, PAGE));
        }
        self.reserve(pages * PAGE, layout.align())
    }

    /// Takes `size` bytes that were never allocated before.
    fn reserve(&mut self, size: usize, align: usize) -> Option<usize> {
        let start = self.next.next_multiple_of(align);
        let end = start.checked_add(size).filter(|end| *end <= self.limit)?;
        self.next = end;
        Some(start)
    }
}

/// The number of bytes that an allocation takes: those of its class, or whole pages.
fn bytes(class: Option<usize>, layout: Layout) -> usize {
    match class {
        Some(class) => CLASSES[class],
        None => layout.size().div_ceil(PAGE) * PAGE,
    }
}

/// The index of the smallest class into which a layout fits; `None` if it gets pages of its own.
fn class_of(layout: Layout) -> Option<usize> {
    if layout.size() > LARGEST || layout.align() > PAGE {
        return None;
    }
    let fits = |class: &usize| {
        CLASSES[*class] >= layout.size() && CLASSES[*class].is_multiple_of(layout.align())
    };
    let octave = layout.size().max(1).next_power_of_two().trailing_zeros() as usize;
    // Blocks up to 128 bytes are classes 0 to 7, those up to 2^n are up to class 4 n - 21.
    let first = if octave <= 7 { layout.size().max(1).div_ceil(16) - 1 } else { 4 * octave - 24 };
    (first..CLASSES.len()).find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn the_smallest_class_that_fits() {
        for size in 1..=LARGEST {
            let class = class_of(layout(size, 1)).unwrap();
            assert!(CLASSES[class] >= size && (class == 0 || CLASSES[class - 1] < size), "{size}");
        }
        assert_eq!(CLASSES[class_of(layout(65, 64)).unwrap()], 128);
        assert_eq!(CLASSES[class_of(layout(200, 128)).unwrap()], 256);
        assert_eq!(class_of(layout(LARGEST + 1, 1)), None);
    }

    #[test]
    fn cores_share_no_page() {
        let mut heap = Heap::new(1 << 20, 1 << 30);
        heap.set_cores(2);
        let mut allocate = |core| {
            heap.core = core;
            heap.allocate(layout(24, 8)).unwrap().addr().get()
        };
        let (a, b, c) = (allocate(0), allocate(1), allocate(0));
        assert_ne!(a / PAGE, b / PAGE);
        assert_eq!(c - a, 32);
    }

    #[test]
    fn bytes_in_use_are_counted() {
        let mut heap = Heap::new(1 << 20, 1 << 30);
        // Without an arena behind the addresses, no small block can be freed.
        heap.set_cores(1);
        heap.allocate(layout(24, 8)).unwrap();
        let large = layout(LARGEST + 1, 8);
        let pages = heap.allocate(large).unwrap();
        assert_eq!(heap.in_use(), 32 + (LARGEST + 1).next_multiple_of(PAGE));
        // SAFETY: `heap` has allocated the block in this test, and no code uses it.
        unsafe { heap.free(pages.as_ptr(), large) };
        assert_eq!(heap.in_use(), 32);
    }

    #[test]
    fn alignment_is_kept() {
        let mut heap = Heap::new(1 << 20, 1 << 30);
        heap.set_cores(1);
        for align in [8, 64, 128, 4096, 1 << 16] {
            for size in [1, 100, 5000, 200_000] {
                let at = heap.allocate(layout(size, align)).unwrap().addr().get();
                assert!(at.is_multiple_of(align), "{size} bytes aligned to {align} at {at:#x}");
            }
        }
    }
}
