//! Where buckets are, by their numbers, and how many.

use alloc::boxed::Box;
use core::fmt;
use core::ptr::null_mut;

use super::bucket::Bucket;
use crate::session::Link;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{CachePadded, array_of};

/// As many arrays as double the number of buckets each, from one to more than there is memory for.
const ARRAYS: usize = 48;

/// Where the buckets of a growing table are.
///
/// Invariant: an array that is there is from `Box`, and as long as [`array_of_number`](Self::array_of_number) says.
pub struct Directory<K, V> {
    /// Places: the first array has those of the first buckets, each other one as many as all before it.
    arrays: [AtomicPtr<Place>; ARRAYS],
    /// How many buckets there were at first, a power of two. They are born.
    first: usize,
    /// How many keys there may be for each bucket before there are more of those.
    load: usize,
    /// How many have been claimed. Read by all, and written by who has it grow.
    buckets: CachePadded<AtomicUsize>,
    /// How many keys there are, by and by; wraps.
    keys: CachePadded<AtomicUsize>,
    /// Whether somebody makes an array.
    is_making: AtomicBool,
    _buckets: core::marker::PhantomData<fn() -> Bucket<K, V>>,
}

/// A place of a bucket: null, or where it is.
type Place = AtomicPtr<()>;

impl<K, V> Directory<K, V> {
    /// With so many buckets, a power of two, as they are made by `create`.
    pub(super) fn new(
        first: usize,
        load: usize,
        mut create: impl FnMut() -> Link<Bucket<K, V>>,
    ) -> Self {
        let places: Box<[Place]> = (0..first).map(|_| Place::new(create().as_ptr())).collect();
        let arrays = array_of!(AtomicPtr::new(null_mut()); ARRAYS);
        // Relaxed: nobody else has it.
        arrays[0].store(Box::into_raw(places).cast(), Ordering::Relaxed);
        Self {
            arrays,
            first,
            load: load.max(1),
            buckets: CachePadded(AtomicUsize::new(first)),
            keys: CachePadded(AtomicUsize::new(0)),
            is_making: AtomicBool::new(false),
            _buckets: core::marker::PhantomData,
        }
    }

    /// How many buckets there are, or will be soon.
    #[inline]
    pub(super) fn buckets(&self) -> usize {
        self.buckets.load(Ordering::Relaxed) // Relaxed: a guess
    }

    /// How many there were at first.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The bucket in which keys with this hash are if all that were claimed are born.
    #[inline]
    pub(super) fn guess(&self, hash: usize) -> usize {
        let buckets = self.buckets();
        let level = buckets.ilog2();
        let number = hash & ((2 << level) - 1);
        if number < buckets { number } else { hash & ((1 << level) - 1) }
    }

    /// The bucket of which this one is born, which is not one of the first.
    #[inline]
    pub(super) fn parent(&self, number: usize) -> usize {
        number & !(1 << number.ilog2())
    }

    /// The level with which a bucket is born.
    pub(super) fn level_at_birth(&self, number: usize) -> u8 {
        let level = if number < self.first { self.first.ilog2() } else { number.ilog2() + 1 };
        level as u8
    }

    /// The array in which a number's place is, that of its first place, and how many places it has.
    #[inline]
    fn array_of_number(&self, number: usize) -> (&AtomicPtr<Place>, usize, usize) {
        if number < self.first {
            return (&self.arrays[0], 0, self.first);
        }
        let level = number.ilog2();
        let length = 1 << level;
        (&self.arrays[(level - self.first.ilog2()) as usize + 1], length, length)
    }

    #[inline]
    fn slot(&self, number: usize) -> Option<&Place> {
        let (array, start, _) = self.array_of_number(number);
        // Acquire: partner of the Release in `make`.
        let places = array.load(Ordering::Acquire);
        // SAFETY: an array that is there has the place, and stays to the end.
        (!places.is_null()).then(|| unsafe { &*places.add(number - start) })
    }

    /// Where the bucket is; null if it is not known there yet.
    #[inline]
    pub(super) fn place(&self, number: usize) -> Link<Bucket<K, V>> {
        // Acquire: partner of the Release in `publish`.
        let acquire = Ordering::Acquire;
        Link::from_ptr(self.slot(number).map_or(null_mut(), |slot| slot.load(acquire)))
    }

    /// Says where the bucket is, which has been claimed; or somebody else has.
    pub(super) fn publish(
        &self,
        number: usize,
        bucket: Link<Bucket<K, V>>,
    ) -> Result<(), Link<Bucket<K, V>>> {
        let slot = self.slot(number).expect("the array is made before a bucket is claimed");
        // Release: partner of the Acquire in `place`. Acquire on failure: as there.
        let (done, failed) = (Ordering::Release, Ordering::Acquire);
        let published = slot.compare_exchange(null_mut(), bucket.as_ptr(), done, failed);
        published.map(|_| ()).map_err(Link::from_ptr)
    }

    /// There are so many keys more.
    pub(super) fn count(&self, more: isize) {
        if more != 0 {
            self.keys.fetch_add(more.cast_unsigned(), Ordering::Relaxed); // Relaxed: a statistic
        }
    }

    /// The number of a bucket that the caller is to have be born, if there are too few.
    pub(super) fn claim(&self) -> Option<usize> {
        let keys = self.keys.load(Ordering::Relaxed); // Relaxed: a statistic
        // Acquire: partner of the Release below: the arrays of all buckets that were claimed before.
        let number = self.buckets.load(Ordering::Acquire);
        // Of keys that come and go, threads may have told of those that went first.
        let most = isize::try_from(number.saturating_mul(self.load)).unwrap_or(isize::MAX);
        let is_enough = keys.cast_signed() <= most;
        if is_enough || !self.make(number) {
            return None;
        }
        // Release: partner of the Acquire above. Relaxed on failure: another thread has claimed it.
        let (done, failed) = (Ordering::Release, Ordering::Relaxed);
        self.buckets.compare_exchange(number, number + 1, done, failed).ok()
    }

    /// Whether there is an array for this number: one is made, unless somebody else is at it.
    fn make(&self, number: usize) -> bool {
        if self.slot(number).is_some() {
            return true;
        }
        // Acquire: partner of the Release below: who finds the right free finds what was made.
        if self.is_making.swap(true, Ordering::Acquire) {
            return false;
        }
        let (array, _, length) = self.array_of_number(number);
        // Relaxed: written by who has the right.
        if array.load(Ordering::Relaxed).is_null() {
            let places: Box<[Place]> = (0..length).map(|_| Place::new(null_mut())).collect();
            // Release: partner of the Acquire in `slot`.
            let release = Ordering::Release;
            array.store(Box::into_raw(places).cast(), release);
        }
        self.is_making.store(false, Ordering::Release); // Release: see above
        true
    }
}

impl<K, V> Drop for Directory<K, V> {
    fn drop(&mut self) {
        for (index, array) in self.arrays.iter().enumerate() {
            let places = array.load(Ordering::Relaxed); // Relaxed: nobody else has it
            let length = self.first << index.saturating_sub(1);
            if !places.is_null() {
                // SAFETY: from `Box`, and so long. Buckets are their domain's.
                drop(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(places, length)) });
            }
        }
    }
}

impl<K, V> fmt::Debug for Directory<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("buckets", &self.buckets()).finish_non_exhaustive()
    }
}
