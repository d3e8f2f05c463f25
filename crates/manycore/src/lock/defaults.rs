//! `Mutex` and `RwLock`: the default locks, with the data that they protect.

use super::{Adaptive, AdaptiveRw};

/// Data that one thread uses at a time, with an [`Adaptive`] lock. It can be a `static`, takes 16
/// bytes in addition to the data, allocates nothing, and is not poisoned by a panic.
///
/// ```
/// use manycore::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
///
/// Methods are those of [`lock_api::Mutex`], which takes any other lock of this crate in the same
/// way: `lock_api::Mutex<manycore::lock::Mcs, T>`.
pub type Mutex<T> = lock_api::Mutex<Adaptive, T>;

/// The data of a [`Mutex`] while it is locked.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Adaptive, T>;

/// A part of the data of a [`Mutex`] while it is locked, by [`lock_api::MutexGuard::map`].
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, Adaptive, T>;

/// Data that many threads read at the same time, or one changes, with an [`AdaptiveRw`] lock. While
/// writers are rare, readers on different CPUs write no cache line in common.
///
/// ```
/// use manycore::RwLock;
///
/// let routes = RwLock::new(vec!["a", "b"]);
/// routes.write().push("c");
/// assert_eq!(routes.read().len(), 3);
/// ```
pub type RwLock<T> = lock_api::RwLock<AdaptiveRw, T>;

/// The data of a [`RwLock`] for a reader.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, AdaptiveRw, T>;

/// The data of a [`RwLock`] for the writer.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, AdaptiveRw, T>;

/// A part of the data of a [`RwLock`] for a reader.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, AdaptiveRw, T>;

/// A part of the data of a [`RwLock`] for the writer.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, AdaptiveRw, T>;
