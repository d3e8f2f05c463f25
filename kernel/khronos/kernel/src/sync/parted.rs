//! A value under several locks whose waiters sleep: it is read with one of them, and changed with
//! all of them. So readers that take different locks write no common cache line.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use manycore::sync::CachePadded;

use super::order::Rank;
use super::sleep::{Guard, Sleep};

/// How many locks.
const PARTS: usize = 8;

/// The value, and its locks.
pub struct Parted<T> {
    locks: [CachePadded<Sleep<()>>; PARTS],
    value: UnsafeCell<T>,
}

// SAFETY: with a lock held the value is shared, and with all of them it is one thread's, which may
// be any.
unsafe impl<T: Send + Sync> Sync for Parted<T> {}
// SAFETY: a `Parted` that moves is not borrowed, so no thread has one of its locks; the value goes
// to the other thread (`T: Send`).
unsafe impl<T: Send> Send for Parted<T> {}

impl<T> Parted<T> {
    /// With nothing locked.
    pub fn new(rank: Rank, value: T) -> Self {
        let locks = core::array::from_fn(|_| CachePadded(Sleep::new(rank, ())));
        Self { locks, value: UnsafeCell::new(value) }
    }

    /// The value, for the owner of the whole.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Acquires the value for reading: no thread changes it, and no other thread reads it by the
    /// same part. Parts are numbers, and several may have the same lock.
    #[track_caller]
    pub fn read(&self, part: u64) -> Reading<'_, T> {
        let _lock = self.locks[part as usize % PARTS].lock();
        // SAFETY: a writer needs all the locks, and `_lock` is one of them, which is released only
        // after the last use of the reference.
        Reading { value: unsafe { &*self.value.get() }, _lock }
    }

    /// To change the value: no other thread has it.
    #[track_caller]
    pub fn write(&self) -> Writing<'_, T> {
        Writing { value: &self.value, _locks: self.locks.each_ref().map(|lock| lock.lock()) }
    }
}

/// One lock is held.
pub struct Reading<'a, T> {
    value: &'a T,
    _lock: Guard<'a, ()>,
}

/// All locks are held.
pub struct Writing<'a, T> {
    value: &'a UnsafeCell<T>,
    _locks: [Guard<'a, ()>; PARTS],
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `write` has acquired all the locks, which `_locks` holds, and a reader has one of
        // them: there is none.
        unsafe { &*self.value.get() }
    }
}

impl<T> DerefMut for Writing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `write` has acquired all the locks, which `_locks` holds, so that no other guard
        // exists; this one is borrowed mutably.
        unsafe { &mut *self.value.get() }
    }
}
