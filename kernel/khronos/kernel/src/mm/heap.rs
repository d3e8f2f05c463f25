//! The kernel's heap. Each CPU has lists of free pieces of 64 to 2,048 bytes; larger requests get
//! whole frames. A piece has its cache lines for itself, so two allocations never share a line. A
//! freed piece stays with the CPU that freed it. A CPU exchanges whole batches with the *depot*,
//! which all CPUs share: it puts a batch in when it has too many free pieces, and takes one out
//! when it has none. (The name is that of J. Bonwick and J. Adams, "Magazines and Vmem", USENIX ATC
//! 2001, whose magazines are the batches.)

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;

use super::direct_map;
use super::frames;
use crate::arch::cpu;
use crate::sync::order::Rank;
use crate::sync::pin::with_interrupts_off;
use crate::sync::spin::IrqSpin;

/// 64, 128, ... 2,048 bytes.
const CLASSES: usize = 6;
const SMALLEST: usize = 64;
const LARGEST: usize = SMALLEST << (CLASSES - 1);

/// A free piece.
#[derive(Clone, Copy)]
struct Free {
    next: *mut Free,
    /// In the first piece of a batch: the next batch.
    next_batch: *mut Free,
}

/// A CPU's free pieces, by class.
pub struct Cache {
    lists: [(*mut Free, usize); CLASSES],
}

/// The depot's batches, a list for each class.
struct Depot([*mut Free; CLASSES]);

// SAFETY: a piece in the depot is free, and no thread reads or writes it; the lock orders its
// change from one CPU's lists to another's.
unsafe impl Send for Depot {}

static DEPOT: IrqSpin<Depot> = IrqSpin::new(Rank::Heap, Depot([ptr::null_mut(); CLASSES]));

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// Creates lists without pieces.
    pub const fn new() -> Self {
        Self { lists: [(ptr::null_mut(), 0); CLASSES] }
    }

    fn take(&mut self, class: usize) -> *mut u8 {
        if self.lists[class].0.is_null() && !self.fetch(class) && !self.carve(class) {
            return ptr::null_mut();
        }
        let (head, count) = &mut self.lists[class];
        let piece = *head;
        // SAFETY: the list is not empty, and a piece in it is free memory with a `Free` at its
        // begin, which `give` or `carve` has written.
        *head = unsafe { (*piece).next };
        *count -= 1;
        piece.cast()
    }

    fn give(&mut self, class: usize, piece: *mut u8) {
        let (head, count) = &mut self.lists[class];
        let piece = piece.cast::<Free>();
        // SAFETY: the caller has freed the piece, which is of this class and so at least as large
        // as `Free`.
        unsafe { piece.write(Free { next: *head, next_batch: ptr::null_mut() }) };
        *head = piece;
        *count += 1;
        if *count >= 2 * batch(class) {
            self.put_back(class);
        }
    }

    /// Puts a batch into the depot.
    fn put_back(&mut self, class: usize) {
        let (head, count) = &mut self.lists[class];
        let first = *head;
        let mut last = first;
        for _ in 1..batch(class) {
            // SAFETY: the list has at least twice as many pieces as a batch, each with a `Free`
            // that leads to the next.
            last = unsafe { (*last).next };
        }
        let mut depot = DEPOT.lock();
        // SAFETY: both are free pieces of this list, each with a `Free` at its begin; the depot's
        // lock is held.
        unsafe {
            *head = (*last).next;
            (*last).next = ptr::null_mut();
            (*first).next_batch = depot.0[class];
        }
        depot.0[class] = first;
        *count -= batch(class);
    }

    /// Takes a batch from the depot; returns whether there was one.
    fn fetch(&mut self, class: usize) -> bool {
        let mut depot = DEPOT.lock();
        let first = depot.0[class];
        if first.is_null() {
            return false;
        }
        // SAFETY: a batch in the depot begins with a free piece, in which `put_back` has written
        // the next batch; the depot's lock is held.
        depot.0[class] = unsafe { (*first).next_batch };
        self.lists[class] = (first, batch(class));
        true
    }

    /// Divides a new frame into pieces; returns whether there was a frame.
    fn carve(&mut self, class: usize) -> bool {
        let Some(frame) = frames::take(0) else { return false };
        let bytes = SMALLEST << class;
        for at in (0..frames::BYTES).step_by(bytes) {
            let piece = direct_map::physical(frame).wrapping_add(at).cast::<Free>();
            let (head, count) = &mut self.lists[class];
            // SAFETY: `frames::take` has given the frame to this allocator, and `at` leaves room
            // for a piece of this class.
            unsafe { piece.write(Free { next: *head, next_batch: ptr::null_mut() }) };
            *head = piece;
            *count += 1;
        }
        true
    }
}

/// The number of pieces in a batch: as many as fit into a frame, at most 64.
fn batch(class: usize) -> usize {
    (frames::BYTES / (SMALLEST << class)).min(64)
}

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

fn class_of(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(SMALLEST);
    (bytes <= LARGEST).then(|| (bytes.next_power_of_two() / SMALLEST).ilog2() as usize)
}

fn order_of(layout: Layout) -> usize {
    let bytes = layout.size().max(layout.align());
    bytes.div_ceil(frames::BYTES).next_power_of_two().ilog2() as usize
}

fn with_cache<R>(run: impl FnOnce(&mut Cache) -> R) -> R {
    // SAFETY: the CPU's own, with interrupts off: nothing else uses it meanwhile.
    with_interrupts_off(|| run(unsafe { &mut *cpu::this().heap.get() }))
}

// SAFETY: pieces are of powers of two and aligned to their size, as a frame's parts and frames are;
// each is in one list, or its owner's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class_of(layout) {
            Some(class) => with_cache(|cache| cache.take(class)),
            None => frames::take(order_of(layout)).map_or(ptr::null_mut(), direct_map::physical),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match class_of(layout) {
            Some(class) => with_cache(|cache| cache.give(class, pointer)),
            // SAFETY: it came from `alloc` with the same layout.
            None => unsafe { frames::give(direct_map::address_of(pointer), order_of(layout)) },
        }
    }
}
