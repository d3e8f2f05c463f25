//! A table of buckets, and how its entries get into the next one, which has twice as many.

use alloc::boxed::Box;
use core::ptr::null_mut;

use super::bucket::{Bucket, Locked};
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::order;

/// How many buckets a writer moves beside its own while the map grows.
const MOVED_TOGETHER: usize = 8;

/// The map grows when more than one bucket in eight has further lines: with keys that are spread
/// well there are four entries in a bucket then.
const WITH_FURTHER: usize = 8;

/// The buckets. `T` is an entry.
pub(super) struct Table<T> {
    /// A power of two.
    buckets: Box<[Bucket<T>]>,
    /// The next table; null before this one has become too small.
    next: AtomicPtr<Table<T>>,
    /// Which bucket somebody moves next, and how many are moved.
    cursor: AtomicUsize,
    moved: AtomicUsize,
    /// How many further lines there are.
    further: AtomicUsize,
}

impl<T> Table<T> {
    /// With this number of buckets, rounded up to a power of two.
    pub fn new(buckets: usize) -> Self {
        Self {
            buckets: (0..buckets.next_power_of_two()).map(|_| Bucket::default()).collect(),
            next: AtomicPtr::new(null_mut()),
            cursor: AtomicUsize::new(0),
            moved: AtomicUsize::new(0),
            further: AtomicUsize::new(0),
        }
    }

    /// How many buckets hold this number of entries without becoming too small.
    pub fn buckets_for(entries: usize) -> usize {
        (entries / 4).max(1)
    }

    pub fn buckets(&self) -> &[Bucket<T>] {
        &self.buckets
    }

    #[inline]
    pub fn bucket(&self, hash: u64) -> &Bucket<T> {
        // SAFETY: the remainder by the length, a power of two.
        unsafe { self.buckets.get_unchecked(hash as usize & (self.buckets.len() - 1)) }
    }

    /// The next table, if there is one. This one was found in a section that is not over.
    #[inline]
    pub fn next(&self) -> Option<&Self> {
        // SAFETY: null, or a table that is retired after this one, which is there.
        unsafe { self.next_table().as_ref() }
    }

    /// The same as a pointer, which may be null.
    #[inline]
    pub fn next_table(&self) -> *mut Self {
        // Acquire: partner of the Release in `grow`.
        self.next.load(order!(Acquire, "map-next"))
    }

    /// Whether all entries are in the next table.
    pub fn is_moved(&self) -> bool {
        // Acquire: partner of the AcqRel in `move_bucket`: all buckets are moved.
        self.moved.load(Ordering::Acquire) == self.buckets.len()
    }

    /// One line more, or less, beside the buckets.
    pub fn count_further(&self, more: bool) {
        // Relaxed, both: a number by which to grow.
        if more {
            self.further.fetch_add(1, Ordering::Relaxed);
        } else {
            self.further.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there had better be more buckets.
    pub fn is_small(&self) -> bool {
        // Relaxed: as in `count_further`.
        self.further.load(Ordering::Relaxed) > self.buckets.len() / WITH_FURTHER
    }

    /// Has a next table from now on. The caller knows that all entries of the table before it are
    /// in this one.
    #[cold]
    pub fn grow(&self) {
        if self.next().is_some() {
            return;
        }
        let next = Box::into_raw(Box::new(Self::new(2 * self.buckets.len())));
        // Release: partner of the Acquire in `next`. Relaxed on failure: another thread's will do.
        let done = order!(Release, "map-grow");
        if self.next.compare_exchange(null_mut(), next, done, Ordering::Relaxed).is_err() {
            // SAFETY: from the box above, and shown to nobody.
            drop(unsafe { Box::from_raw(next) });
        }
    }

    /// Moves some buckets. Says whether all are moved now.
    pub fn help(&self, next: &Self, hash: impl Fn(*mut T) -> u64) -> bool {
        // Relaxed, both: who moves which bucket; each is moved under its lock.
        if self.cursor.load(Ordering::Relaxed) < self.buckets.len() {
            let from = self.cursor.fetch_add(MOVED_TOGETHER, Ordering::Relaxed);
            let to = (from + MOVED_TOGETHER).min(self.buckets.len());
            for index in from..to {
                if let Some(locked) = self.buckets[index].lock() {
                    self.move_bucket(locked, index, next, &hash);
                }
            }
        }
        self.is_moved()
    }

    /// Moves the bucket of this number, which the caller has locked.
    pub fn move_bucket(
        &self,
        locked: Locked<'_, T>,
        index: usize,
        next: &Self,
        hash: impl Fn(*mut T) -> u64,
    ) {
        /// Takes back what was filled in, if a hash panics: the entries are still in this table.
        struct Undo<'t, T>([&'t Bucket<T>; 2]);
        impl<T> Drop for Undo<'_, T> {
            fn drop(&mut self) {
                self.0.iter().for_each(|bucket| bucket.forget());
            }
        }
        let half = self.buckets.len();
        // No other thread finds a bucket of the next table before this one is moved.
        let undo = Undo([&next.buckets[index], &next.buckets[index + half]]);
        locked.for_each(|tag, entry| {
            let upper = hash(entry) as usize & half != 0;
            if undo.0[usize::from(upper)].fill(tag, entry) {
                next.count_further(true);
            }
        });
        core::mem::forget(undo);
        locked.moved();
        // AcqRel: each release is for the Acquire in `is_moved`, which finds the last one's.
        self.moved.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends this table and those after it, once it has shown each entry.
    ///
    /// # Safety
    ///
    /// The table is from a box, and nobody else has it, nor an entry.
    pub unsafe fn end(mut first: *mut Self, mut entry: impl FnMut(*mut T)) {
        while !first.is_null() {
            // SAFETY: `first` is from a box (contract of this function), and so are the tables after it, see
            // `grow`; nobody else has them.
            let table = unsafe { Box::from_raw(first) };
            for bucket in &table.buckets {
                if let Some(word) = bucket.read() {
                    bucket.for_each(word, |_, place| entry(place));
                }
            }
            first = table.next_table();
        }
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }
}

impl<T> Drop for Table<T> {
    /// Its lines; the entries are in another table, or have ended. The next table is not its own.
    fn drop(&mut self) {
        self.buckets.iter().for_each(Bucket::forget);
    }
}
