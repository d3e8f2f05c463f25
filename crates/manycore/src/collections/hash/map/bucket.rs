//! A bucket: a line of the cache, with room for six entries and a byte of each one's hash.

use alloc::boxed::Box;
use core::ptr::null_mut;

use super::super::table::Buckets;
use super::super::word::{MOVED, free, lock, matching, occupied, slots, tag_bits, tag_of, with};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::order;

/// How many entries a line has room for.
const SLOTS: usize = 6;
const TAGS: u64 = tag_bits(SLOTS);

/// Entries of one bucket, or some of them. `T` is an entry.
///
/// Invariant: a slot whose byte in `word` is not 0 leads to an entry, which was put there before
/// the byte. Only the thread that has locked the bucket writes it; the bucket's further lines are
/// locked with it.
#[repr(C, align(64))]
pub(super) struct Bucket<T> {
    /// A byte for each slot, and the flags. Those of a further line have no flags.
    word: AtomicU64,
    slots: [AtomicPtr<T>; SLOTS],
    /// A further line; null if there is none.
    more: AtomicPtr<Bucket<T>>,
}

impl<T> Default for Bucket<T> {
    fn default() -> Self {
        let slots = core::array::from_fn(|_| AtomicPtr::new(null_mut()));
        Self { word: AtomicU64::new(0), slots, more: AtomicPtr::new(null_mut()) }
    }
}

/// Where an entry is.
pub(super) struct Place<'t, T> {
    line: &'t Bucket<T>,
    slot: usize,
    entry: *mut T,
}

impl<T> Place<'_, T> {
    /// What was there when it was found.
    pub fn entry(&self) -> *mut T {
        self.entry
    }
}

impl<T> Bucket<T> {
    /// The bucket as a reader sees it; none if its entries are in the next table.
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
    ) -> Option<Place<'_, T>> {
        let (mut line, mut word) = (self, word);
        loop {
            for slot in slots(matching(word, TAGS, tag)) {
                // Acquire: partner of the Releases in `Locked::put_in` and `Locked::replace`.
                let entry = line.slots[slot].load(order!(Acquire, "map-slot"));
                assert!(!cfg!(loom) || !entry.is_null(), "a byte without an entry");
                if is(entry) {
                    return Some(Place { line, slot, entry });
                }
            }
            line = line.further()?;
            // Acquire: partner of the Releases in `Locked::put_in` and `Locked::take_out`.
            word = line.word.load(order!(Acquire, "map-further-read"));
        }
    }

    #[inline]
    fn further(&self) -> Option<&Self> {
        // Acquire: partner of the Release in `Locked::put_in`.
        let more = self.more.load(order!(Acquire, "map-more"));
        // SAFETY: null, or a line that `put_in` has made. It lives as long as the table or, if it
        // was removed, as long as the sections that could find it.
        unsafe { more.as_ref() }
    }

    /// All entries, as `word` has them.
    pub fn for_each(&self, word: u64, mut f: impl FnMut(u8, *mut T)) {
        let (mut line, mut word) = (self, word);
        loop {
            for slot in slots(occupied(word, TAGS)) {
                // Acquire: as in `find`.
                f(tag_of(word, slot), line.slots[slot].load(Ordering::Acquire));
            }
            let Some(next) = line.further() else { return };
            line = next;
            word = line.word.load(Ordering::Acquire); // Acquire: as in `find`
        }
    }

    /// Keeps other writers out; none if its entries are in the next table.
    #[inline]
    pub fn lock(&self) -> Option<Locked<'_, T>> {
        lock(&self.word).map(|word| Locked { bucket: self, word })
    }
}

/// A bucket whose writer is the caller. Dropped, it is another's.
pub(super) struct Locked<'t, T> {
    bucket: &'t Bucket<T>,
    /// What its word is going to be.
    word: u64,
}

impl<'t, T> Locked<'t, T> {
    /// The entry with this tag of which `is` says yes.
    #[inline]
    pub fn find(&self, tag: u8, is: impl FnMut(*mut T) -> bool) -> Option<Place<'t, T>> {
        self.bucket.find(self.word, tag, is)
    }

    /// Puts in one that is not there. Says whether it took another line.
    pub fn put_in(&mut self, tag: u8, entry: *mut T) -> bool {
        if let Some(slot) = free(self.word, TAGS) {
            // Release: partner of the Acquire in `find`, for a thread that has read the word when
            // another entry was in the slot. (No model fails with it weakened, so it is not among
            // the mutations.)
            self.bucket.slots[slot].store(entry, Ordering::Release);
            self.word = with(self.word, slot, tag); // which others see when this is dropped
            return false;
        }
        let mut last = self.bucket;
        while let Some(line) = last.further() {
            let word = line.word.load(Ordering::Relaxed); // Relaxed: this thread is the writer
            if let Some(slot) = free(word, TAGS) {
                line.slots[slot].store(entry, Ordering::Release); // Release: as above
                // Release: partner of the Acquire in `find`.
                line.word.store(with(word, slot, tag), order!(Release, "map-put-further"));
                return false;
            }
            last = line;
        }
        let line = Box::new(Bucket::default());
        // Relaxed, both: shown by the store below.
        line.slots[0].store(entry, Ordering::Relaxed);
        line.word.store(with(0, 0, tag), Ordering::Relaxed);
        let line = Box::into_raw(line);
        // Release: partner of the Acquire in `further`.
        last.more.store(line, order!(Release, "map-put-line"));
        true
    }

    /// Puts an entry with the same key in another's place.
    #[inline]
    pub fn replace(&self, place: &Place<'t, T>, entry: *mut T) {
        // Release: partner of the Acquire in `find`.
        place.line.slots[place.slot].store(entry, order!(Release, "map-replace"));
    }

    /// Removes an entry, which other threads may still have found. If a further line became empty
    /// by that, it is unlinked and returned; the caller has to retire it.
    #[inline]
    pub fn take_out(&mut self, place: &Place<'t, T>) -> Option<*mut Bucket<T>> {
        if core::ptr::eq(place.line, self.bucket) {
            self.word = with(self.word, place.slot, 0);
            return None;
        }
        let word = place.line.word.load(Ordering::Relaxed); // Relaxed: this thread is the writer
        let word = with(word, place.slot, 0);
        // Release: partner of the Acquire in `find`.
        place.line.word.store(word, order!(Release, "map-take-further"));
        (word == 0).then(|| self.unlink(place.line))
    }

    #[cold]
    fn unlink(&self, empty: &Bucket<T>) -> *mut Bucket<T> {
        let mut before = self.bucket;
        loop {
            // Relaxed, here and below: this thread is the writer.
            let next = before.more.load(Ordering::Relaxed);
            if core::ptr::eq(next, empty) {
                // Release: partner of the Acquire in `further`: the lines behind it were visible to
                // this thread only.
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
    /// The bucket of this number.
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
        let word = bucket.word.load(Ordering::Relaxed); // Relaxed: nobody else has it
        let mut filled = Locked { bucket, word };
        filled.put_in(tag, entry)
    }

    fn forget(&self, number: usize) {
        let bucket = self.bucket(number);
        bucket.word.store(0, Ordering::Relaxed); // Relaxed, here and below: nobody else has it
        let mut more = bucket.more.swap(null_mut(), Ordering::Relaxed);
        while !more.is_null() {
            // SAFETY: from a box, see `put_in`, and no other thread has it.
            let line = unsafe { Box::from_raw(more) };
            more = line.more.load(Ordering::Relaxed);
        }
    }
}
