//! A thread's part of the log: items in the order of their stamps.
//!
//! Its *writer*, the thread, adds items at the end, and takes back the last one. The *reader*, a
//! thread with the structure's lock, takes items from the beginning. Both change one word, which
//! has the number of added items and the number of taken ones.

use alloc::boxed::Box;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, mutation, order};

/// The number of items in a segment: few for the model checker and where schedules are explored, so
/// that both reach its end.
const ITEMS: usize = if cfg!(any(loom, feature = "sim")) { 2 } else { 64 };

/// An item, and when it was added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamped<T> {
    pub stamp: u64,
    pub value: T,
}

/// A slot belongs to the writer until its item is added; then the word's changes determine the
/// item's owner.
struct Segment<T> {
    places: [UnsafeCell<MaybeUninit<Stamped<T>>>; ITEMS],
    /// The writer's until an item of that segment is added.
    next: UnsafeCell<*mut Segment<T>>,
    /// For the writer, which reads it only if the last item of that segment was not taken.
    previous: *mut Segment<T>,
}

impl<T> Segment<T> {
    fn new(previous: *mut Self) -> *mut Self {
        let places = core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Box::into_raw(Box::new(Self { places, next: UnsafeCell::new(null_mut()), previous }))
    }
}

/// The position of a thread in the segments.
struct Position<T> {
    segment: *mut Segment<T>,
    /// From 0 to `ITEMS`: then it is the beginning of the next segment.
    place: usize,
}

impl<T> Position<T> {
    /// The place of an item here.
    ///
    /// # Safety
    ///
    /// The place is below `ITEMS`, and the segment is there.
    unsafe fn place(&self) -> &UnsafeCell<MaybeUninit<Stamped<T>>> {
        // SAFETY: the segment is valid, and the place is below `ITEMS` (contract of this function).
        unsafe { &(&(*self.segment).places)[self.place] }
    }
}

/// Shared by both: pending items are between the two counts, which wrap around.
pub(super) struct Run<T> {
    /// The number of added items, less the withdrawn ones, in the upper half; the number of taken
    /// items in the lower half.
    word: CachePadded<AtomicU64>,
    /// For the first reader.
    first: *mut Segment<T>,
}

// SAFETY: of an item's place, either the writer or the reader has the right at a time, as the word
// says; an item goes from one to the other (`T: Send`). `first` does not change.
unsafe impl<T: Send> Sync for Run<T> {}

/// Adds 1 to the number of items that were added.
const ADDED: u64 = 1 << 32;

/// How many were added and are neither taken nor taken back.
fn pending(word: u64) -> u32 {
    ((word >> 32) as u32).wrapping_sub(word as u32)
}

/// The word, after this many more were taken.
fn after_taking(word: u64, count: u32) -> u64 {
    (word & !(ADDED - 1)) | u64::from((word as u32).wrapping_add(count))
}

impl<T> Run<T> {
    /// Without items; and its writer.
    pub fn new() -> (Self, Writer<T>) {
        let segment = Segment::new(null_mut());
        let run = Self { word: CachePadded(AtomicU64::new(0)), first: segment };
        (run, Writer { at: Position { segment, place: 0 }, last: 0, own: 0 })
    }

    /// The run's reader.
    ///
    /// # Safety
    ///
    /// There is one, once.
    pub unsafe fn reader(&self) -> Reader<T> {
        Reader { at: Position { segment: self.first, place: 0 } }
    }
}

/// The writer's side.
pub(super) struct Writer<T> {
    at: Position<T>,
    /// The last stamp.
    last: u64,
    /// The number of items that the present handle has added and not taken back. It may take back
    /// only these.
    own: u32,
}

impl<T> Writer<T> {
    /// There is another handle from now on.
    pub fn begin(&mut self) {
        self.own = 0;
    }

    /// The stamp of an item that is added now: this one, or one more than the last stamp if that is
    /// later.
    pub fn stamp(&mut self, now: u64) -> u64 {
        self.last = now.max(self.last + 1);
        self.last
    }

    /// Adds an item with the last stamp.
    ///
    /// # Safety
    ///
    /// The writer is that of the run.
    ///
    /// # Panics
    ///
    /// If 2^32 - 1 items are pending.
    #[inline]
    pub unsafe fn add(&mut self, run: &Run<T>, value: T) {
        // Relaxed: an item that is taken meanwhile makes room only.
        let word = run.word.load(Ordering::Relaxed);
        assert!(pending(word) < u32::MAX, "a thread has logged more than anybody can count");
        if self.at.place == ITEMS {
            // SAFETY: the writer's segment is valid: the reader frees a segment only after it has
            // gone on to the next one, and no item was added there.
            let next = unsafe { (*self.at.segment).next.with(|next| *next) };
            self.at = Position { segment: self.next_or_new(next), place: 0 };
        }
        let stamped = MaybeUninit::new(Stamped { stamp: self.last, value });
        // SAFETY: the place is not among the added ones, so it is the writer's until the word below
        // changes; it is below `ITEMS`.
        unsafe { self.at.place().with_mut(|place| *place = stamped) };
        self.at.place += 1;
        self.own = self.own.saturating_add(1);
        // Release: partner of the Acquire in `take`. A read-modify-write: others see it before the
        // clock is read next.
        run.word.fetch_add(ADDED, order!(Release, "ordered-add"));
    }

    /// The segment after this one. It exists already if the writer has come back from it.
    fn next_or_new(&self, next: *mut Segment<T>) -> *mut Segment<T> {
        if !next.is_null() {
            return next;
        }
        let new = Segment::new(self.at.segment);
        // SAFETY: the writer's segment is there, as in `add`, and the reader follows its link only
        // once an item of the next one was added.
        unsafe { (*self.at.segment).next.with_mut(|next| *next = new) };
        new
    }

    /// Takes back the last added item, unless it was taken, or belongs to another handle.
    ///
    /// # Safety
    ///
    /// The writer is that of the run.
    #[inline]
    pub unsafe fn take_back(&mut self, run: &Run<T>) -> Option<Stamped<T>> {
        // Relaxed, throughout: this thread wrote the item that is taken back, and no other has seen
        // it.
        let mut word = run.word.load(Ordering::Relaxed);
        loop {
            if self.own == 0 || pending(word) == 0 {
                return None;
            }
            let relaxed = Ordering::Relaxed;
            if mutation!("ordered-takes-anyway") {
                run.word.store(word - ADDED, relaxed);
                break;
            }
            match run.word.compare_exchange_weak(word, word - ADDED, relaxed, relaxed) {
                Ok(_) => break,
                Err(changed) => word = changed,
            }
        }
        if self.at.place == 0 {
            // SAFETY: the word has just said that the item before was not taken. It is in the
            // segment before, in which the reader is, or before it: so that is there.
            let previous = unsafe { (*self.at.segment).previous };
            self.at = Position { segment: previous, place: ITEMS };
        }
        self.at.place -= 1;
        self.own -= 1;
        // SAFETY: the word was changed so that the item counts as not added: its place is
        // initialised and the writer's again, and it is read once.
        Some(unsafe { self.at.place().with(|place| (*place).assume_init_read()) })
    }
}

/// The reader's side.
pub(super) struct Reader<T> {
    at: Position<T>,
}

impl<T> Reader<T> {
    /// Takes the first items, at most this many, and returns their number. Each is passed to `to`,
    /// which must not panic.
    ///
    /// # Safety
    ///
    /// The reader is that of the run.
    pub unsafe fn take(&mut self, run: &Run<T>, limit: u32, mut to: impl FnMut(Stamped<T>)) -> u32 {
        // Relaxed: of what came before, no earlier state can be seen.
        let mut word = run.word.load(Ordering::Relaxed);
        let count = loop {
            let count = pending(word).min(limit);
            if count == 0 {
                return 0;
            }
            // Acquire: partner of the Release in `add`. Relaxed on failure: it is tried again.
            let (taken, acquire) = (after_taking(word, count), order!(Acquire, "ordered-take"));
            match run.word.compare_exchange_weak(word, taken, acquire, Ordering::Relaxed) {
                Ok(_) => break count,
                Err(changed) => word = changed,
            }
        };
        // SAFETY: the word has just been changed so that these count as taken: they are
        // initialised, this thread's, and each is read once.
        (0..count).for_each(|_| to(unsafe { self.next() }));
        count
    }

    /// The next item.
    ///
    /// # Safety
    ///
    /// It was taken, and not read yet.
    unsafe fn next(&mut self) -> Stamped<T> {
        if self.at.place == ITEMS {
            // SAFETY: an item of the next segment was added, so that the link is written, and was
            // taken, so that the writer does not come back to this one: it is the reader's to free.
            // `Segment::new` has made it by a box.
            let segment = unsafe { Box::from_raw(self.at.segment) };
            // SAFETY: the segment is owned now, and so is its link.
            let next = segment.next.with(|next| unsafe { *next });
            self.at = Position { segment: next, place: 0 };
        }
        // SAFETY: the item was taken (contract of this function), so that its place is initialised
        // and this thread's; the place is below `ITEMS`.
        let item = unsafe { self.at.place().with(|place| (*place).assume_init_read()) };
        self.at.place += 1;
        item
    }

    /// Frees the segments.
    ///
    /// # Safety
    ///
    /// No thread uses the run, now or later, and all items were removed.
    pub unsafe fn free(&mut self) {
        let mut segment = self.at.segment;
        while !segment.is_null() {
            // SAFETY: `Segment::new` has made it by a box, and the run is not used any more
            // (contract of this function); each is in the list once.
            let owned = unsafe { Box::from_raw(segment) };
            // SAFETY: the segment is owned now, and so is its link.
            segment = owned.next.with(|next| unsafe { *next });
        }
    }
}
