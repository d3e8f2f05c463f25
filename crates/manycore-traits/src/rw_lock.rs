//! Locks that many readers may hold at the same time.

use crate::LockInfo;

/// A reader-writer lock without the data it protects.
///
/// A thread that reads must not begin to read again: a writer that waits in between may stop it,
/// for ever.
///
/// # Safety
///
/// An implementation guarantees that between the acquisition for writing and its release no other
/// acquisition returns (or returns true), and that between one for reading and its release none for
/// writing does. What happened before a release happens before the return of each acquisition that
/// it kept waiting, or could have.
pub unsafe trait RawRwLock: Send + Sync {
    /// The lock's row in `manycore locks`.
    const INFO: LockInfo;

    /// A lock that no thread holds.
    fn new() -> Self
    where
        Self: Sized;

    /// Acquires the lock for reading if that needs no wait; returns whether it did.
    fn try_acquire_read(&self) -> bool;

    /// Acquires the lock for reading, waiting for as long as that takes.
    fn acquire_read(&self);

    /// Releases the lock after reading.
    ///
    /// # Safety
    ///
    /// The calling thread has acquired the lock for reading, and has not released it since.
    unsafe fn release_read(&self);

    /// Acquires the lock for writing if that needs no wait; returns whether it did.
    fn try_acquire_write(&self) -> bool;

    /// Acquires the lock for writing, waiting for as long as that takes.
    fn acquire_write(&self);

    /// Releases the lock after writing.
    ///
    /// # Safety
    ///
    /// The calling thread has acquired the lock for writing, and has not released it since.
    unsafe fn release_write(&self);
}
