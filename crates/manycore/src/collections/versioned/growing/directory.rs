//! Where buckets are, by their numbers, and how many.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ptr::null_mut;

use super::array::{self, EmbeddedBucket};
use super::bucket::Bucket;
use crate::collections::hashing::Mixing;
use crate::session::Link;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{CachePadded, array_of, order};

/// How often the number of buckets may double: to more than fit into any memory. The model checker
/// has to keep account of each array.
const DOUBLINGS: usize = if cfg!(loom) { 3 } else { 48 };

/// Each doubling consists of this many arrays, made one after the other, so little memory is used
/// for buckets that are not needed yet.
const PARTS_LOG: u32 = 3;
const PARTS: usize = 1 << PARTS_LOG;

/// Where the buckets of a growing table are.
///
/// Invariant: an existing array is as long as [`array_of_number`](Self::array_of_number) says, and
/// stays until the end.
pub struct Directory<K, V, S = Mixing> {
    /// The places of the first buckets.
    first_array: AtomicPtr<EmbeddedBucket<K, V>>,
    /// The other arrays. The first [`PARTS`] together are as long as the first array, the next ones
    /// as long as all before them.
    arrays: [AtomicPtr<EmbeddedBucket<K, V>>; DOUBLINGS * PARTS],
    /// The number of buckets at first, a power of two. They exist from the beginning.
    first: usize,
    /// The number of keys for each bucket above which the table grows.
    load: usize,
    /// The number of claimed buckets. All threads read it; the thread that makes the table grow
    /// writes it.
    buckets: CachePadded<AtomicUsize>,
    /// How many keys there are, by and by; wraps.
    keys: CachePadded<AtomicUsize>,
    /// Whether a thread makes an array.
    is_making: AtomicBool,
    hasher: S,
}

impl<K: Copy, V: Copy, S> Directory<K, V, S> {
    /// Creates one with this number of buckets, a power of two, without entries.
    pub(in crate::collections) fn new(first: usize, load: usize, hasher: S) -> Self {
        let places = array::allocate(first);
        let level = first.ilog2() as u8;
        // SAFETY: the array has this length, and no other thread has it.
        (0..first).for_each(|index| unsafe {
            places.add(index).write(EmbeddedBucket::new(Bucket::new(level)))
        });
        Self {
            first_array: AtomicPtr::new(places),
            arrays: array_of!(AtomicPtr::new(null_mut()); DOUBLINGS * PARTS),
            first,
            load: load.max(1),
            buckets: CachePadded(AtomicUsize::new(first)),
            keys: CachePadded(AtomicUsize::new(0)),
            is_making: AtomicBool::new(false),
            hasher,
        }
    }

    /// The hash of a key, or of its borrowed form. Its lower bits choose the bucket.
    #[inline]
    pub(in crate::collections) fn hash_of<Q: Hash + ?Sized>(&self, key: &Q) -> usize
    where
        S: BuildHasher,
    {
        self.hasher.hash_one(key) as usize
    }

    /// How many buckets there are, or will be soon.
    #[inline]
    pub(in crate::collections) fn buckets(&self) -> usize {
        self.buckets.load(Ordering::Relaxed) // Relaxed: a guess
    }

    /// How many there were at first.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The bucket that has the keys with this hash if all claimed buckets have been split off.
    #[inline]
    pub(super) fn guess(&self, hash: usize) -> usize {
        let buckets = self.buckets();
        let level = buckets.ilog2();
        let number = hash & ((2 << level) - 1);
        if number < buckets { number } else { hash & ((1 << level) - 1) }
    }

    /// The bucket from which this one is split off; this one is not among the first buckets.
    #[inline]
    pub(super) fn parent(&self, number: usize) -> usize {
        number & !(1 << number.ilog2())
    }

    /// The level with which a bucket is split off.
    pub(super) fn first_level(&self, number: usize) -> u8 {
        let level = if number < self.first { self.first.ilog2() } else { number.ilog2() + 1 };
        level as u8
    }

    /// The array with a bucket's number, the number of the array's first bucket, and its length.
    #[inline]
    fn array_of_number(&self, number: usize) -> (&AtomicPtr<EmbeddedBucket<K, V>>, usize, usize) {
        if number < self.first {
            return (&self.first_array, 0, self.first);
        }
        let level = number.ilog2();
        let shift = level.saturating_sub(PARTS_LOG);
        let part = number >> shift & (PARTS.min(1 << level) - 1);
        let doubling = (level - self.first.ilog2()) as usize;
        (&self.arrays[doubling * PARTS + part], number >> shift << shift, 1 << shift)
    }

    /// The address of the bucket; null if this thread does not know its array yet.
    #[inline]
    pub(super) fn place(&self, number: usize) -> Link<Bucket<K, V>> {
        let (array, start, _) = self.array_of_number(number);
        // Acquire: partner of the Release in `make`.
        let places = array.load(order!(Acquire, "growing-array"));
        if places.is_null() {
            return Link::NULL;
        }
        // SAFETY: an existing array is as long as `array_of_number` says (invariant of
        // `Directory`), and the number is within it.
        EmbeddedBucket::link(unsafe { places.add(number - start) })
    }

    /// Does the same, and makes the bucket's array if there is none.
    pub(super) fn place_or_make(&self, number: usize) -> Link<Bucket<K, V>> {
        if self.place(number).is_null() {
            self.make(number);
        }
        self.place(number)
    }

    /// Makes the array for this number, unless another thread is faster.
    #[cold]
    fn make(&self, number: usize) {
        let (array, _, length) = self.array_of_number(number);
        let new = array::allocate(length);
        // Release: partner of the Acquire in `place`, for the array's contents. Relaxed on failure:
        // a thread that follows it loads it again.
        let (made, relaxed) = (order!(Release, "growing-made"), Ordering::Relaxed);
        if array.compare_exchange(null_mut(), new, made, relaxed).is_err() {
            // SAFETY: `allocate` has made the array with this length, and no other thread has seen
            // it.
            unsafe { array::free(new, length) };
        }
    }

    /// The addresses of all allocated buckets, whether or not they are split off yet.
    pub(super) fn places(&self) -> impl Iterator<Item = Link<Bucket<K, V>>> {
        // Buckets without memory have higher numbers than those with memory, except for arrays that
        // could not be made.
        let last = self.buckets().next_power_of_two();
        (0..last).map(|number| self.place(number)).filter(|place| !place.is_null())
    }

    /// There are this many keys more.
    pub(in crate::collections) fn count(&self, more: isize) {
        if more != 0 {
            self.keys.fetch_add(more.cast_unsigned(), Ordering::Relaxed); // Relaxed: a statistic
        }
    }

    /// The number of a bucket that the caller is to split off, if there are too few.
    pub(super) fn claim(&self) -> Option<usize> {
        // Relaxed, throughout: to all threads but the one that claims, by a compare-and-swap, these
        // numbers are guesses. Arrays are acquired where they are used.
        let keys = self.keys.load(Ordering::Relaxed);
        let number = self.buckets.load(Ordering::Relaxed);
        // If keys come and go, threads may have reported the removals first.
        let most = isize::try_from(number.saturating_mul(self.load)).unwrap_or(isize::MAX);
        if keys.cast_signed() <= most {
            return None;
        }
        if self.place(number).is_null() {
            // One thread makes the array, which is large; the others retry with their next key.
            if self.is_making.swap(true, Ordering::Relaxed) {
                return None;
            }
            self.make(number);
            self.is_making.store(false, Ordering::Relaxed); // Relaxed: as above
        }
        let relaxed = Ordering::Relaxed;
        self.buckets.compare_exchange(number, number + 1, relaxed, relaxed).ok()
    }
}

impl<K, V, S> Drop for Directory<K, V, S> {
    fn drop(&mut self) {
        let others = self.arrays.iter().enumerate().map(|(index, array)| {
            let level = self.first.ilog2() + (index / PARTS) as u32;
            // Levels beyond the possible numbers of buckets have no array.
            (array, 1_usize.checked_shl(level.saturating_sub(PARTS_LOG)).unwrap_or_default())
        });
        for (array, length) in others.chain([(&self.first_array, self.first)]) {
            let places = array.load(Ordering::Relaxed); // Relaxed: no other thread has it
            if !places.is_null() {
                // SAFETY: `make` or `new` has allocated the array with this length; the domain,
                // whose sessions used it, was dropped first, as the first field of `Versioned`.
                unsafe { array::free(places, length) };
            }
        }
    }
}

impl<K, V, S> fmt::Debug for Directory<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("first", &self.first).finish_non_exhaustive()
    }
}
