//! Memory for short-lived objects. Free objects are in lists of the thread that freed them; a
//! thread with too many gives batches of them to all threads.
//!
//! It is allocated in chunks, and lies close together: lines of the CPU's cache hold objects of one
//! structure, and no other data of the program. No memory is freed before the end of the whole
//! pool, so a link to a freed object still leads to valid memory. When there is much of it, chunks
//! are parts of regions, and for each region the system is asked for a large page.

use alloc::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::boxed::Box;
use core::ptr::{NonNull, null_mut};

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{const_new, hint};

/// Memory for objects that another component owns, which knows the place of each object.
///
/// # Safety
///
/// The places are of this many bytes at least, aligned to 32, in no other use, and there for as
/// long as this is.
pub unsafe trait Memory: Send + Sync {
    /// Gives at least one place for an object of this size, and not more than `most`.
    fn places(&self, size: usize, most: usize, give: &mut dyn FnMut(NonNull<u8>));
}

/// The alignment of a chunk, and the size of the header at its start.
const LINE: usize = 64;
/// The first chunks have this many bytes, or the requested number; later chunks have half of the
/// existing memory, up to the largest.
const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 64 << 10;

/// A region: what a large page of x86-64 and AArch64 takes.
const REGION: usize = 2 << 20;
/// With this many bytes the next chunks are parts of regions. The simulator and the model checker
/// have no pages.
const REGIONS_FROM: usize =
    if cfg!(any(loom, feature = "sim")) { isize::MAX as usize } else { 4 * REGION };

/// How many free objects of a size a thread keeps; then half of them go to all.
const KEPT: usize = 256;

/// The contents of a free object, which is at least as large as this.
pub(crate) struct Free {
    next: *mut Free,
    /// In the first object of a batch that is for all: the next batch.
    batch: *mut Free,
}

/// A thread's free objects of a size.
#[derive(Clone, Copy)]
pub(crate) struct List {
    first: *mut Free,
    length: usize,
}

impl List {
    pub const EMPTY: Self = Self { first: null_mut(), length: 0 };

    /// An object's memory.
    #[inline]
    pub fn take(&mut self) -> Option<*mut u8> {
        let free = self.first;
        if free.is_null() {
            return None;
        }
        // SAFETY: `give` and `refill` put only objects on the list that begin with a `Free` and are
        // in no other use.
        self.first = unsafe { (*free).next };
        self.length -= 1;
        Some(free.cast())
    }

    /// Takes back the memory of an object.
    ///
    /// # Safety
    ///
    /// It is large enough for a [`Free`] and aligned for it, stays as long as the batches, and is
    /// in no other use: `take` or `refill` of a list over the same batches has returned it.
    #[inline]
    pub unsafe fn give(&mut self, object: *mut u8, batches: &GlobalFreeList) {
        let free = object.cast::<Free>();
        // SAFETY: the memory is large enough for a `Free`, aligned for it, and in no other use
        // (contract of this function).
        unsafe { free.write(Free { next: self.first, batch: null_mut() }) };
        *self = Self { first: free, length: self.length + 1 };
        if self.length > KEPT {
            self.give_batch(batches);
        }
    }

    /// Half of what there is, to the thread that needs it.
    #[cold]
    fn give_batch(&mut self, batches: &GlobalFreeList) {
        let first = self.first;
        let mut last = first;
        for _ in 1..KEPT / 2 {
            // SAFETY: the list has more than `KEPT` objects, and this goes less than half that far.
            last = unsafe { (*last).next };
        }
        self.length -= KEPT / 2;
        // SAFETY: `last` is an object of this list, met above. Those up to it leave the list, and
        // are this thread's to give.
        unsafe {
            self.first = (*last).next;
            (*last).next = null_mut();
            batches.give(first);
        }
    }

    /// When it is empty: an object's memory of all's, or new.
    #[cold]
    pub fn refill(
        &mut self,
        size: usize,
        from: &GlobalFreeList,
        rest: &mut BumpTail,
        chunks: &Chunks,
    ) -> *mut u8 {
        let batch = from.take();
        *self = Self { first: batch, length: if batch.is_null() { 0 } else { KEPT / 2 } };
        if let Some(object) = self.take() {
            return object;
        }
        match &chunks.memory {
            None => rest.cut(size, chunks),
            Some(memory) => self.fill(size, &**memory),
        }
    }

    /// When it is empty: memory for an object from the owner, which gives several at a time.
    fn fill(&mut self, size: usize, memory: &dyn Memory) -> *mut u8 {
        memory.places(size, KEPT / 2, &mut |place| {
            let free = place.as_ptr().cast::<Free>();
            // SAFETY: the place has at least as many bytes as a `Free`, aligned to more than that,
            // and is in no other use (contract of `Memory`).
            unsafe { free.write(Free { next: self.first, batch: null_mut() }) };
            *self = Self { first: free, length: self.length + 1 };
        });
        self.take().expect("the owner of the memory gives at least one place")
    }
}

/// Free objects of a size that are for all, by the batch.
pub(crate) struct GlobalFreeList(AtomicPtr<Free>);

impl GlobalFreeList {
    const_new! {
        pub fn new() -> Self {
            Self(AtomicPtr::new(null_mut()))
        }
    }

    /// A batch; null if there is none. Takes all batches and puts back the rest, because a single
    /// one may be another thread's by then.
    fn take(&self) -> *mut Free {
        // Threads that have to request new memory come here for each object: they only read the
        // line as long as nothing is there. Relaxed: a hint.
        if self.0.load(Ordering::Relaxed).is_null() {
            return null_mut();
        }
        // Acquire: partner of the Release in `give`.
        let first = self.0.swap(null_mut(), Ordering::Acquire);
        if !first.is_null() {
            // SAFETY: the swap has taken all batches out, so that no other thread reaches them;
            // each begins with a `Free`.
            let mut rest = unsafe { (*first).batch };
            while !rest.is_null() {
                // SAFETY: no other thread reaches the batch until this one gives it back.
                unsafe {
                    let next = (*rest).batch;
                    self.give(rest);
                    rest = next;
                }
            }
        }
        first
    }

    /// # Safety
    ///
    /// The argument is a batch of free objects, linked by `next`, that no other thread can reach.
    unsafe fn give(&self, batch: *mut Free) {
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread finds the batch before the compare-and-swap below (contract
            // of this function).
            unsafe { (*batch).batch = head };
            // Release: partner of the Acquire in `take`.
            let release = Ordering::Release;
            match self.0.compare_exchange_weak(head, batch, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }
}

/// What is left of the chunk that a thread got last.
pub(crate) struct BumpTail {
    place: *mut u8,
    bytes: usize,
}

impl BumpTail {
    pub const NONE: Self = Self { place: null_mut(), bytes: 0 };

    /// New memory for an object.
    fn cut(&mut self, size: usize, chunks: &Chunks) -> *mut u8 {
        if self.bytes < size {
            *self = chunks.add(size);
        }
        let place = self.place;
        // SAFETY: `bytes` is at least `size`, and this many bytes from `place` on are within the
        // chunk.
        self.place = unsafe { place.add(size) };
        self.bytes -= size;
        place
    }
}

/// The first line of a chunk, or of a region.
struct Chunk {
    next: *mut Chunk,
    bytes: usize,
    /// How much of a region was given out.
    used: AtomicUsize,
}

/// All chunks, which are freed with this.
pub(crate) struct Chunks {
    newest: AtomicPtr<Chunk>,
    /// The region that is given out in parts.
    region: AtomicPtr<Chunk>,
    bytes: AtomicUsize,
    /// In the place of chunks.
    memory: Option<Box<dyn Memory>>,
}

impl Chunks {
    pub fn new() -> Self {
        Self::with_memory(None)
    }

    pub fn with_memory(memory: Option<Box<dyn Memory>>) -> Self {
        let (newest, region) = (AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut()));
        Self { newest, region, bytes: AtomicUsize::new(0), memory }
    }

    /// Bytes that were ever asked for.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) // Relaxed: a statistic
    }

    /// A new one, in which there is room for an object of this size.
    fn add(&self, size: usize) -> BumpTail {
        if self.bytes() >= REGIONS_FROM && size <= LARGEST {
            return self.add_to_region();
        }
        let bytes =
            (self.bytes() / 2).clamp(SMALLEST, LARGEST).max((size + LINE).next_power_of_two());
        let layout = layout_of(bytes);
        // SAFETY: a layout of at least `SMALLEST` bytes is not of size 0.
        let memory = unsafe { alloc_zeroed(layout) };
        self.note(memory, layout);
        // SAFETY: a chunk has more bytes than a line.
        BumpTail { place: unsafe { memory.add(LINE) }, bytes: bytes - LINE }
    }

    /// As large a part of a region as a chunk may be.
    fn add_to_region(&self) -> BumpTail {
        loop {
            // Acquire: partner of the Release below.
            let region = self.region.load(Ordering::Acquire);
            // SAFETY: null, or a region, which stays until the end of all.
            if let Some(region_now) = unsafe { region.as_ref() } {
                // Relaxed: the number only divides the region; the memory is as it was made.
                let from = region_now.used.fetch_add(LARGEST, Ordering::Relaxed);
                if from + LARGEST <= REGION {
                    // SAFETY: `from` is within the region, and `fetch_add` gives each place to one
                    // caller.
                    let place = unsafe { region.cast::<u8>().add(from) };
                    return BumpTail { place, bytes: LARGEST };
                }
            }
            let new = self.new_region();
            // Release: partner of the Acquire above, for the writes of `note`. Relaxed on failure:
            // another thread's value will do; this one is not used, and its memory is given out in
            // parts later.
            let done = Ordering::Release;
            if self.region.compare_exchange(region, new, done, Ordering::Relaxed).is_err() {
                // SAFETY: the region has `REGION` bytes, more than a line, and no other thread
                // knows it yet.
                let place = unsafe { new.cast::<u8>().add(LINE) };
                return BumpTail { place, bytes: REGION - LINE };
            }
        }
    }

    /// Memory for which a large page is requested before it is written.
    fn new_region(&self) -> *mut Chunk {
        let layout = layout_of(REGION);
        // SAFETY: the layout is not of size 0.
        let memory = unsafe { alloc(layout) };
        if !memory.is_null() {
            hint::huge_pages(memory, REGION);
            // SAFETY: `alloc` has returned memory of `REGION` bytes, which no other thread knows.
            unsafe { memory.write_bytes(0, REGION) };
        }
        self.note(memory, layout)
    }

    /// Writes the first line of new memory, so that it is freed in the end.
    fn note(&self, memory: *mut u8, layout: Layout) -> *mut Chunk {
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let bytes = layout.size();
        self.bytes.fetch_add(bytes, Ordering::Relaxed); // Relaxed: a statistic
        let chunk = memory.cast::<Chunk>();
        // Relaxed, throughout: chunks are only followed at the end.
        let mut head = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the memory is new, of at least a line, which is as large as a `Chunk`, and no
            // other thread finds it before the compare-and-swap.
            unsafe { chunk.write(Chunk { next: head, bytes, used: AtomicUsize::new(LINE) }) };
            let relaxed = Ordering::Relaxed; // Relaxed: as above
            match self.newest.compare_exchange_weak(head, chunk, relaxed, relaxed) {
                Ok(_) => return chunk,
                Err(changed) => head = changed,
            }
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let mut chunk = self.newest.load(Ordering::Relaxed); // Relaxed: no other thread is left
        while !chunk.is_null() {
            // SAFETY: `add` has allocated it with this layout and written its head; the users of
            // its objects borrowed from the owner of `self`, and are gone.
            unsafe {
                let Chunk { next, bytes, .. } = chunk.read();
                dealloc(chunk.cast(), layout_of(bytes));
                chunk = next;
            }
        }
    }
}

/// The layout of a chunk, or of a region, whose alignment is its size.
fn layout_of(bytes: usize) -> Layout {
    let align = if bytes == REGION { REGION } else { LINE };
    Layout::from_size_align(bytes, align).expect("objects are not as large as that")
}
