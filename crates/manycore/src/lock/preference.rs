//! Whether readers or writers go first when they contend, for locks that leave the choice to the
//! reader.

/// Whether readers or writers go first when they contend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preference {
    /// A reader gets the lock whenever no writer holds it, so that a thread may acquire it for
    /// reading again while it reads. Writers may starve. This is glibc's default.
    Readers,
    /// A waiting writer stops new readers, and after it all waiting readers go first: no thread
    /// starves. A thread that reads must not acquire the lock for reading again.
    Phases,
}

/// For a reader-writer lock that has `try_read` and `read_until` by [`Preference`], and `try_write`
/// and `write_until`. Implements the forms without a deadline, and those of
/// [`RawRwLock`](crate::RawRwLock), in which readers do not pass waiting writers. The place of use
/// documents its safety.
macro_rules! raw_by_preference {
    ($lock:ident, $info:expr) => {
        impl $lock {
            /// Acquires the lock for reading.
            #[inline]
            pub fn read(&self, preference: $crate::lock::Preference) {
                self.read_until(preference, None);
            }

            /// Acquires the lock for writing.
            #[inline]
            pub fn write(&self) {
                self.write_until(None);
            }
        }

        // SAFETY: the `SAFETY` comment at each use of this macro argues that its lock excludes and
        // orders.
        unsafe impl $crate::RawRwLock for $lock {
            const INFO: $crate::LockInfo = $info;

            fn new() -> Self {
                Self::new()
            }

            #[inline]
            fn try_acquire_read(&self) -> bool {
                self.try_read($crate::lock::Preference::Phases)
            }

            #[inline]
            fn acquire_read(&self) {
                self.read($crate::lock::Preference::Phases);
            }

            #[inline]
            unsafe fn release_read(&self) {
                // SAFETY: the calling thread has acquired the lock for reading and not released it
                // (contract of `RawRwLock::release_read`), as the inherent method requires.
                unsafe { self.release_read() }
            }

            #[inline]
            fn try_acquire_write(&self) -> bool {
                self.try_write()
            }

            #[inline]
            fn acquire_write(&self) {
                self.write();
            }

            #[inline]
            unsafe fn release_write(&self) {
                // SAFETY: the calling thread has acquired the lock for writing and not released it
                // (contract of `RawRwLock::release_write`), as the inherent method requires.
                unsafe { self.release_write() }
            }
        }

        #[cfg(all(feature = "lock_api", not(loom)))]
        // SAFETY: with `Preference::Readers` a reader waits for no writer that waits, so that a
        // thread may read while it reads.
        unsafe impl lock_api::RawRwLockRecursive for $lock {
            #[inline]
            fn lock_shared_recursive(&self) {
                self.read($crate::lock::Preference::Readers);
            }

            #[inline]
            fn try_lock_shared_recursive(&self) -> bool {
                self.try_read($crate::lock::Preference::Readers)
            }
        }

        // Without an operating system there is no clock against which a deadline could be checked.
        #[cfg(all(
            feature = "lock_api",
            any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare)))
        ))]
        // SAFETY: `read_until` and `write_until` acquire the lock if and only if they return true.
        unsafe impl lock_api::RawRwLockTimed for $lock {
            type Duration = core::time::Duration;
            type Instant = $crate::sync::Moment;

            fn try_lock_shared_for(&self, timeout: core::time::Duration) -> bool {
                self.read_until(
                    $crate::lock::Preference::Phases,
                    Some($crate::sync::Deadline::after(timeout)),
                )
            }

            fn try_lock_shared_until(&self, deadline: $crate::sync::Moment) -> bool {
                self.read_until($crate::lock::Preference::Phases, Some(deadline.into()))
            }

            fn try_lock_exclusive_for(&self, timeout: core::time::Duration) -> bool {
                self.write_until(Some($crate::sync::Deadline::after(timeout)))
            }

            fn try_lock_exclusive_until(&self, deadline: $crate::sync::Moment) -> bool {
                self.write_until(Some(deadline.into()))
            }
        }
    };
}
pub(super) use raw_by_preference;
