//! A bucket: a cache line with room for six entries, and for a byte of the hash of each.

use alloc::boxed::Box;
use core::ptr::null_mut;

use super::super::table::Buckets;
use super::super::word::{MOVED, free, lock, matching, occupied, slots, tag_bits, tag_of, with};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::order;

/// The number of entries for which a line has room.
const SLOTS: usize = 6;
const TAGS: u64 = tag_bits(SLOTS);

/// Entries of one bucket, or some of them. `T` is an entry.
///
/// Invariant: a slot whose byte in `word` is not 0 leads to an entry, which was stored there before
/// the byte. Only the thread that has locked the bucket writes it. The bucket's lock also protects
/// its overflow lines.
#[repr(C, align(64))]
pub(super) struct Bucket<T> {
    /// A byte for each slot, and the flags. An overflow line has no flags.
    word: AtomicU64,
    slots: [AtomicPtr<T>; SLOTS],
    /// An overflow line; null if there is none.
    more: AtomicPtr<Bucket<T>>,
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        let slots = core::array::from_fn(|_| AtomicPtr::new(null_mut()));
        Self { word: AtomicU64::new(0), slots, more: AtomicPtr::new(null_mut()) }
    }
}

/// An entry and the slot that holds it.
pub(super) struct SlotRef<'t, T> {
    line: &'t Bucket<T>,
    slot: usize,
    entry: *mut T,
}

impl<T> SlotRef<'_, T> {
    /// The slot's entry when it was found.
    pub fn entry(&self) -> *mut T {
        self.entry
    }
}

impl<T> Bucket<T> {
    /// The bucket's word for a reader; `None` if the entries are in the next table.
    #[inline]
    pub fn read(&self) -> Option<u64> {
        // Acquire: partner of the Releases in `Locked::drop` and `Locked::moved`.
        let word = self.word.load(order!(Acquire, "map-read"));
        (word & MOVED == 0).then_some(word)
    }

    /// The entry with this tag for which `is` returns true. `word` is the result of
    /// [`read`](Self::read), or the writer's own word.
    #[inline]
    pub fn find(
        &self,
        word: u64,
        tag: u8,
        mut is: impl FnMut(*mut T) -> bool,
    ) -> Option<SlotRef<'_, T>> {
        let (mut line, mut word) = (self, word);
        loop {
            for slot in slots(matching(word, TAGS, tag)) {
                // Acquire: partner of the Releases in `Locked::put_in` and `Locked::replace`.
                let entry = line.slots[slot].load(order!(Acquire, "map-slot"));
                assert!(!cfg!(loom) || !entry.is_null(), "a byte without an entry");
                if is(entry) {
                    return Some(SlotRef { line, slot, entry });
                }
            }
            line = line.overflow()?;
            // Acquire: partner of the Releases in `Locked::put_in` and `Locked::take_out`.
            word = line.word.load(order!(Acquire, "map-further-read"));
        }
    }

    #[inline]
    fn overflow(&self) -> Option<&Self> {
        // Acquire: partner of the Release in `Locked::put_in`.
        let more = self.more.load(order!(Acquire, "map-more"));
        // SAFETY: null, or a line that `put_in` has made. It lives as long as the table or, if it
        // was removed, as long as the sections that could find it.
        unsafe { more.as_ref() }
    }

    /// Calls `f` with all entries of the slots that are occupied in `word`.
    pub fn for_each(&self, word: u64, mut f: impl FnMut(u8, *mut T)) {
        let (mut line, mut word) = (self, word);
        loop {
            for slot in slots(occupied(word, TAGS)) {
                // Acquire: partner of the Releases in `Locked::put_in` and `Locked::replace`.
                f(tag_of(word, slot), line.slots[slot].load(Ordering::Acquire));
            }
            let Some(next) = line.overflow() else { return };
            line = next;
            // Acquire: partner of the Releases in `Locked::put_in` and `Locked::take_out`.
            word = line.word.load(Ordering::Acquire);
        }
    }

    /// Locks the bucket against other writers; `None` if its entries are in the next table.
    #[inline]
    pub fn lock(&self) -> Option<Locked<'_, T>> {
        lock(&self.word).map(|word| Locked { bucket: self, word })
    }
}

/// A bucket that the calling thread has locked. Dropping this unlocks it.
pub(super) struct Locked<'t, T> {
    bucket: &'t Bucket<T>,
    /// The word that unlocking will store.
    word: u64,
}

impl<'t, T> Locked<'t, T> {
    /// The entry with this tag for which `is` returns true.
    #[inline]
    pub fn find(&self, tag: u8, is: impl FnMut(*mut T) -> bool) -> Option<SlotRef<'t, T>> {
        self.bucket.find(self.word, tag, is)
    }

    /// Inserts an entry whose key is not in the bucket. Returns whether this added an overflow
    /// line.
    pub fn put_in(&mut self, tag: u8, entry: *mut T) -> bool {
        if let Some(slot) = free(self.word, TAGS) {
            // Release: partner of the Acquire in `find`, for a thread that read the word when
            // another entry was in the slot. (No model fails with it weakened, so it is not among
            // the mutations.)
            self.bucket.slots[slot].store(entry, Ordering::Release);
            self.word = with(self.word, slot, tag); // which others see when this is dropped
            return false;
        }
        let mut last = self.bucket;
        while let Some(line) = last.overflow() {
            let word = line.word.load(Ordering::Relaxed); // Relaxed: this thread is the writer
            if let Some(slot) = free(word, TAGS) {
                // Release: partner of the Acquire in `find`, as above.
                line.slots[slot].store(entry, Ordering::Release);
                // Release: partner of the Acquire in `find`.
                line.word.store(with(word, slot, tag), order!(Release, "map-put-further"));
                return false;
            }
            last = line;
        }
        let line = Box::new(Bucket::default());
        // Relaxed, both: the store below publishes them.
        line.slots[0].store(entry, Ordering::Relaxed);
        line.word.store(with(0, 0, tag), Ordering::Relaxed);
        let line = Box::into_raw(line);
        // Release: partner of the Acquire in `overflow`.
        last.more.store(line, order!(Release, "map-put-line"));
        true
    }

    /// Replaces an entry by one with the same key.
    #[inline]
    pub fn replace(&self, slot_ref: &SlotRef<'t, T>, entry: *mut T) {
        // Release: partner of the Acquire in `find`.
        slot_ref.line.slots[slot_ref.slot].store(entry, order!(Release, "map-replace"));
    }

    /// Removes an entry, which other threads may still use. If an overflow line becomes empty, it
    /// is unlinked and returned, and the caller has to retire it.
    #[inline]
    pub fn take_out(&mut self, slot_ref: &SlotRef<'t, T>) -> Option<*mut Bucket<T>> {
        if core::ptr::eq(slot_ref.line, self.bucket) {
            self.word = with(self.word, slot_ref.slot, 0);
            return None;
        }
        let word = slot_ref.line.word.load(Ordering::Relaxed); // Relaxed: this thread is the writer
        let word = with(word, slot_ref.slot, 0);
        // Release: partner of the Acquire in `find`.
        slot_ref.line.word.store(word, order!(Release, "map-take-further"));
        (word == 0).then(|| self.unlink(slot_ref.line))
    }

    #[cold]
    fn unlink(&self, empty: &Bucket<T>) -> *mut Bucket<T> {
        let mut before = self.bucket;
        loop {
            // Relaxed, here and below: this thread is the writer.
            let next = before.more.load(Ordering::Relaxed);
            if core::ptr::eq(next, empty) {
                // Release: partner of the Acquire in `overflow`: the lines behind it were visible
                // to this thread only.
                before.more.store(empty.more.load(Ordering::Relaxed), Ordering::Release);
                return next;
            }
            // SAFETY: the lines up to the unlinked one are valid, and only this thread, the writer,
            // unlinks any.
            before = unsafe { &*next };
        }
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: partner of the Acquires in `lock` and `read`.
        self.bucket.word.store(self.word, order!(Release, "map-unlock"));
    }
}

/// The buckets of a table. `T` is an entry.
pub(super) struct Pointers<T>(Box<[Bucket<T>]>);

impl<T> Pointers<T> {
    /// The bucket with this number.
    #[inline]
    pub fn bucket(&self, number: usize) -> &Bucket<T> {
        &self.0[number]
    }
}

impl<T> Buckets for Pointers<T> {
    type Entry = *mut T;
    type Locked<'t>
        = Locked<'t, T>
    where
        T: 't;

    fn new(count: usize) -> Self {
        Self((0..count).map(|_| Bucket::default()).collect())
    }

    #[inline]
    fn count(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    fn lock(&self, number: usize) -> Option<Locked<'_, T>> {
        self.bucket(number).lock()
    }

    fn for_each(locked: &Locked<'_, T>, f: impl FnMut(u8, *mut T)) {
        locked.bucket.for_each(locked.word, f);
    }

    fn moved(locked: Locked<'_, T>) {
        // Release: partner of the Acquire in `read`, for the entries in the next table's buckets.
        locked.bucket.word.store(MOVED, order!(Release, "map-moved"));
        core::mem::forget(locked);
    }

    fn fill(&self, number: usize, tag: u8, entry: *mut T) -> bool {
        let bucket = self.bucket(number);
        let word = bucket.word.load(Ordering::Relaxed); // Relaxed: no other thread has it
        let mut filled = Locked { bucket, word };
        filled.put_in(tag, entry)
    }

    fn forget(&self, number: usize) {
        let bucket = self.bucket(number);
        bucket.word.store(0, Ordering::Relaxed); // Relaxed, here and below: no other thread has it
        let mut more = bucket.more.swap(null_mut(), Ordering::Relaxed);
        while !more.is_null() {
            // SAFETY: the line comes from a box, see `put_in`, and no other thread has it.
            let line = unsafe { Box::from_raw(more) };
            more = line.more.load(Ordering::Relaxed);
        }
    }
}
