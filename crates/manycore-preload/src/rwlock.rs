//! `pthread_rwlock_t` with a fair reader-writer lock of ours in it.
//!
//! ```text
//!          0 ... 24            24              28          32 ... 40    40           44    48
//! glibc    __readers ...       __cur_writer    __shared    -            __pad2             __flags
//! here     the lock            owner           shared      -            statistics   CPU   kind
//! ```
//!
//! The writer, the sharing and the kind are at glibc's places. glibc owns process-shared locks. The
//! default kind admits readers past waiting writers, as in glibc, because a program may read
//! recursively, or wait for another reader while it reads; the non-recursive kind is fair to both
//! sides.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use core::sync::atomic::{AtomicU32, Ordering};
use libc::{EBUSY, EDEADLK, EINVAL, ETIMEDOUT, clockid_t, timespec};
use manycore::lock::{AdaptiveRw, Preference};
use manycore::sync::Deadline;
use manycore_stats::Kind;

use crate::stats::{self, Attempt, Mode, Object, Wait};
use crate::{glibc, owner, time};

/// The overlay of `pthread_rwlock_t`.
#[repr(C)]
pub struct RwLock {
    lock: AdaptiveRw,
    owner: AtomicU32,
    shared: AtomicU32,
    _elision: UnsafeCell<u64>,
    /// The number of this lock's record in the statistics; 0 if it has none yet.
    record: AtomicU32,
    /// One more than the CPU on which it was last acquired for writing; 0 if that is not known.
    /// Protected by the lock.
    last_cpu: AtomicU32,
    kind: AtomicU32,
    _end: UnsafeCell<u32>,
}

// SAFETY: a lock of ours is atomics, and so are the other fields that are used here; the data in
// cells is glibc's, and nothing here touches it.
unsafe impl Sync for RwLock {}

const _: () = assert!(size_of::<RwLock>() == size_of::<libc::pthread_rwlock_t>());

const NONRECURSIVE: u32 = 2;

// Relaxed throughout: the accesses to `owner`, `shared` and `kind` order nothing. The last two are
// written by the initialiser, which the program orders before every use; a thread compares the
// owner with itself, and reads its own number only if it wrote it.
impl RwLock {
    fn is_ours(&self) -> bool {
        self.shared.load(Ordering::Relaxed) == 0
    }

    fn preference(&self) -> Preference {
        if self.kind.load(Ordering::Relaxed) == NONRECURSIVE {
            Preference::Phases
        } else {
            Preference::Readers
        }
    }

    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == owner::id()
    }

    fn set_owner(&self, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    fn as_glibc(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// The lock as statistics see it.
    fn object(&self, caller: usize) -> Object<'_> {
        Object {
            address: core::ptr::from_ref(self).cast(),
            record: &self.record,
            kind: Kind::RwLock,
            caller,
        }
    }

    fn try_read<const STATS: bool>(&self, caller: usize, attempt: Attempt) -> bool {
        let acquired = self.lock.try_read(self.preference());
        if acquired {
            self.is_read::<STATS>(caller, attempt);
        }
        acquired
    }

    fn is_read<const STATS: bool>(&self, caller: usize, attempt: Attempt) {
        if STATS {
            stats::acquired(&self.object(caller), Mode::Shared, attempt, None);
        }
    }

    fn try_write<const STATS: bool>(&self, caller: usize, attempt: Attempt) -> bool {
        let acquired = self.lock.try_write();
        if acquired {
            self.written::<STATS>(caller, attempt);
        }
        acquired
    }

    fn written<const STATS: bool>(&self, caller: usize, attempt: Attempt) {
        self.set_owner(owner::id());
        if STATS {
            let object = self.object(caller);
            stats::acquired(&object, Mode::Exclusive, attempt, Some(&self.last_cpu));
        }
    }

    fn read<const STATS: bool>(&self, deadline: Option<Deadline>, caller: usize) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let attempt = attempt(deadline);
        if self.lock.read_at_first(self.preference()) {
            self.is_read::<STATS>(caller, attempt);
            return 0;
        }
        let acquired = self.wait::<STATS>(Mode::Shared, attempt, caller, || {
            self.lock.read_until(self.preference(), deadline)
        });
        if !acquired {
            return ETIMEDOUT;
        }
        self.is_read::<STATS>(caller, attempt);
        0
    }

    fn write<const STATS: bool>(&self, deadline: Option<Deadline>, caller: usize) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let attempt = attempt(deadline);
        if self.try_write::<STATS>(caller, attempt) {
            return 0;
        }
        if !self.wait::<STATS>(Mode::Exclusive, attempt, caller, || self.lock.write_until(deadline))
        {
            return ETIMEDOUT;
        }
        self.written::<STATS>(caller, attempt);
        0
    }

    /// Acquires by waiting, and counts the wait.
    fn wait<const STATS: bool>(
        &self,
        mode: Mode,
        attempt: Attempt,
        caller: usize,
        acquire: impl FnOnce() -> bool,
    ) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        let wait = STATS.then(|| Wait::for_lock(&self.object(caller), owner, mode, attempt));
        let acquired = acquire();
        if let Some(wait) = wait {
            wait.end(mode, !acquired);
        }
        acquired
    }
}

/// `pthread_rwlock_init`: glibc reads the attributes and leaves kind, sharing and zeros.
///
/// # Safety
///
/// As POSIX requires. This holds for all functions of this module.
pub unsafe extern "C-unwind" fn init<const STATS: bool>(
    l: *mut RwLock,
    attr: *const libc::pthread_rwlockattr_t,
    caller: usize,
) -> c_int {
    // This also covers an existing lock that was not destroyed: the child of a fork reinitialises
    // its locks like that. SAFETY: the program may have the memory initialised as a lock (contract
    // of this function), and the old bytes are not used as an address.
    unsafe { (*l).lock.forget_marks() };
    // SAFETY: the memory is the program's to be initialised as a lock, and the attributes are null
    // or initialised (contract of this function).
    let (result, lock) = unsafe { (glibc::pthread_rwlock_init(l.cast(), attr), &*l) };
    if STATS && result == 0 && lock.is_ours() {
        stats::initialised(&lock.record, caller);
    }
    result
}

/// `pthread_rwlock_destroy`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn destroy<const STATS: bool>(l: *mut RwLock) -> c_int {
    // SAFETY: the lock is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let lock = unsafe { &*l };
    if lock.is_ours() {
        if STATS {
            stats::destroyed(&lock.record);
        }
        lock.lock.forget_marks();
        return 0;
    }
    // SAFETY: the lock is shared between processes, so that glibc has initialised and owns it; no
    // thread uses it (contract of this function).
    unsafe { glibc::pthread_rwlock_destroy(l.cast()) }
}

/// What an attempt with this deadline does.
fn attempt(deadline: Option<Deadline>) -> Attempt {
    if deadline.is_some() { Attempt::GivesUp } else { Attempt::Waits }
}

/// Waits for as long as it takes.
const FOR_EVER: Option<Deadline> = None;

macro_rules! functions {
    ($(
        $side:ident $try_side:ident: $lock:ident $try_lock:ident $timed:ident $clocked:ident,
        glibc $glibc_lock:ident $glibc_try:ident $glibc_clocked:ident;
    )*) => {
        $(
            #[doc = concat!("`", stringify!($glibc_lock), "`.")]
            ///
            /// # Safety
            ///
            /// See [`init`].
            pub unsafe extern "C-unwind" fn $lock<const STATS: bool>(l: *mut RwLock, caller: usize) -> c_int {
                // SAFETY: the lock is initialised, and lives during the call (contract of this
                // function, that of POSIX).
                let lock = unsafe { &*l };
                if !lock.is_ours() {
                    // SAFETY: the lock is shared between processes, so that glibc has initialised
                    // and owns it; the program may lock it (contract of this function).
                    return unsafe { glibc::$glibc_lock(lock.as_glibc()) };
                }
                lock.$side::<STATS>(FOR_EVER, caller)
            }

            #[doc = concat!("`", stringify!($glibc_try), "`.")]
            ///
            /// # Safety
            ///
            /// See [`init`].
            pub unsafe extern "C-unwind" fn $try_lock<const STATS: bool>(l: *mut RwLock, caller: usize) -> c_int {
                // SAFETY: the lock is initialised, and lives during the call (contract of this
                // function, that of POSIX).
                let lock = unsafe { &*l };
                if !lock.is_ours() {
                    // SAFETY: the lock is shared between processes, so that glibc has initialised
                    // and owns it; the program may lock it (contract of this function).
                    return unsafe { glibc::$glibc_try(lock.as_glibc()) };
                }
                if lock.$try_side::<STATS>(caller, Attempt::GivesUp) { 0 } else { EBUSY }
            }

            #[doc = concat!("`pthread_rwlock_", stringify!($timed), "`.")]
            ///
            /// # Safety
            ///
            /// See [`init`].
            pub unsafe extern "C-unwind" fn $timed<const STATS: bool>(
                l: *mut RwLock,
                until: *const timespec,
                caller: usize,
            ) -> c_int {
                // SAFETY: `l` is a lock that lives during the call, and `until` leads to a time
                // (contract of this function).
                unsafe { $clocked::<STATS>(l, libc::CLOCK_REALTIME, until, caller) }
            }

            #[doc = concat!("`", stringify!($glibc_clocked), "`.")]
            ///
            /// # Safety
            ///
            /// See [`init`].
            pub unsafe extern "C-unwind" fn $clocked<const STATS: bool>(
                l: *mut RwLock,
                clock: clockid_t,
                until: *const timespec,
                caller: usize,
            ) -> c_int {
                // SAFETY: the lock is initialised, and lives during the call (contract of this
                // function, that of POSIX).
                let lock = unsafe { &*l };
                if !lock.is_ours() {
                    // SAFETY: the lock is shared between processes, so that glibc has initialised
                    // and owns it; `until` leads to a time (contract of this function).
                    return unsafe { glibc::$glibc_clocked(lock.as_glibc(), clock, until) };
                }
                if !time::is_supported(clock) {
                    return EINVAL;
                }
                // SAFETY: `until` leads to a time (contract of this function).
                match unsafe { time::deadline(clock, until) } {
                    None => EINVAL,
                    Some(deadline) => lock.$side::<STATS>(Some(deadline), caller),
                }
            }
        )*
    };
}

functions! {
    read try_read: rdlock tryrdlock timedrdlock clockrdlock,
    glibc pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_clockrdlock;

    write try_write: wrlock trywrlock timedwrlock clockwrlock,
    glibc pthread_rwlock_wrlock pthread_rwlock_trywrlock pthread_rwlock_clockwrlock;
}

/// `pthread_rwlock_unlock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn unlock<const STATS: bool>(l: *mut RwLock) -> c_int {
    // SAFETY: the lock is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let lock = unsafe { &*l };
    if !lock.is_ours() {
        // SAFETY: the lock is shared between processes, so that glibc has initialised and owns it;
        // the program holds it (contract of this function).
        return unsafe { glibc::pthread_rwlock_unlock(lock.as_glibc()) };
    }
    if STATS {
        stats::releasing(l.cast_const().cast(), &lock.record);
    }
    // SAFETY: the thread holds the lock (contract of this function, that of POSIX): for writing if
    // it is the owner, because only a writer becomes the owner, and otherwise for reading.
    unsafe {
        if lock.is_mine() {
            lock.set_owner(0);
            lock.lock.release_write();
        } else {
            lock.lock.release_read();
        }
    }
    0
}
