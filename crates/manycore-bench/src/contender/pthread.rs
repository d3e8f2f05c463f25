//! The C library's locks, called as a C program calls them.
//!
//! These calls go through the dynamic linker, so with the preload library they reach it: this
//! measures a lock "through the preload library".

use std::cell::UnsafeCell;
use std::ffi::c_int;

use super::Contender;

/// A pthread object at the address where it was made.
struct InPlace<T>(UnsafeCell<T>);

// SAFETY: the C library's locks are made to be used by many threads at once.
unsafe impl<T> Sync for InPlace<T> {}
// SAFETY: a lock that no thread holds belongs to no thread.
unsafe impl<T> Send for InPlace<T> {}

/// Checks the result of a pthread function. If a lock cannot be acquired, that is a bug of the
/// benchmark or of the preloaded library, and there must be no result.
#[inline]
fn check(result: c_int) {
    assert!(
        result == 0,
        "a pthread function failed: {}",
        std::io::Error::from_raw_os_error(result)
    );
}

/// A mutex made by one of the static initialisers.
#[inline]
fn locked<R>(mutex: &InPlace<libc::pthread_mutex_t>, section: impl FnOnce() -> R) -> R {
    // SAFETY: the mutex is initialised and is not moved while it is borrowed.
    check(unsafe { libc::pthread_mutex_lock(mutex.0.get()) });
    let result = section();
    // SAFETY: `pthread_mutex_lock`, above, has locked it for this thread.
    check(unsafe { libc::pthread_mutex_unlock(mutex.0.get()) });
    result
}

/// `PTHREAD_MUTEX_INITIALIZER`.
pub(super) struct Mutex(InPlace<libc::pthread_mutex_t>);

impl Contender for Mutex {
    fn new() -> Self {
        Self(InPlace(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        locked(&self.0, section)
    }
}

/// `PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP`: spins for a while before it sleeps.
pub(super) struct AdaptiveMutex(InPlace<libc::pthread_mutex_t>);

impl Contender for AdaptiveMutex {
    fn new() -> Self {
        Self(InPlace(UnsafeCell::new(libc::PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        locked(&self.0, section)
    }
}

/// `PTHREAD_RWLOCK_INITIALIZER`.
pub(super) struct RwLock(InPlace<libc::pthread_rwlock_t>);

impl Contender for RwLock {
    fn new() -> Self {
        Self(InPlace(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER)))
    }

    #[inline]
    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the lock is initialised and is not moved while it is borrowed.
        check(unsafe { libc::pthread_rwlock_wrlock(self.0.0.get()) });
        let result = section();
        // SAFETY: the call above has locked it for this thread.
        check(unsafe { libc::pthread_rwlock_unlock(self.0.0.get()) });
        result
    }

    #[inline]
    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the lock is initialised and is not moved while it is borrowed.
        check(unsafe { libc::pthread_rwlock_rdlock(self.0.0.get()) });
        let result = section();
        // SAFETY: this thread holds the lock for reading.
        check(unsafe { libc::pthread_rwlock_unlock(self.0.0.get()) });
        result
    }
}

/// The file that defines `pthread_mutex_lock` in this process; `None` if the dynamic linker does
/// not tell.
pub(crate) fn origin() -> Option<String> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let function = libc::pthread_mutex_lock as *const () as *const libc::c_void;
    // SAFETY: `dladdr` fills the record in if it returns other than 0, and takes any address.
    let found = unsafe { libc::dladdr(function, info.as_mut_ptr()) } != 0;
    // SAFETY: zeroed, which is a valid value of a record of pointers, or filled in.
    let info = unsafe { info.assume_init() };
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a string of the dynamic linker, which lives as long as the library is
    // loaded.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
    Some(name.to_string_lossy().into_owned())
}
