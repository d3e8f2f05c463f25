//! `pthread_mutex_t` with a lock of ours in it.
//!
//! ```text
//!          0            4            8            12           16           20           24 ... 40
//! glibc    __lock       __count      __owner      __nusers     __kind       __spins      __list
//! here     statistics   count        owner        -            kind         last CPU     the lock
//! ```
//!
//! Kind, owner and count are at glibc's places, so static initialisers are understood and a
//! debugger shows the owner. A kind other than the four plain types is a mutex that glibc owns
//! (robust, priority-inheriting, priority-protected, process-shared, or destroyed): those go to
//! glibc.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use libc::{EAGAIN, EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, clockid_t, timespec};
use manycore::lock::InlineLock;
use manycore_stats::Kind;

use crate::stats::{self, Attempt, Mode, Object, Wait};
use crate::{glibc, owner, time};

/// The overlay of `pthread_mutex_t`.
#[repr(C)]
pub struct Mutex {
    /// The number of this mutex' record in the statistics; 0 if it has none yet.
    record: AtomicU32,
    /// How often the owner of a recursive mutex holds it. Only the owner reads it.
    count: AtomicU32,
    owner: AtomicU32,
    /// glibc's count of users, which its destroy function checks: always 0 here.
    _users: UnsafeCell<u32>,
    kind: AtomicI32,
    /// One more than the CPU on which it was last acquired; 0 if that is not known. Protected by
    /// the lock.
    last_cpu: AtomicU32,
    /// In a cell, because every kind of lock consists of atomics, which this type does not show.
    lock: UnsafeCell<[u64; 2]>,
    /// There the object is larger.
    #[cfg(target_arch = "aarch64")]
    _rest: UnsafeCell<u64>,
}

// SAFETY: a lock of ours is atomics, and so are the other fields that are used here. If the mutex
// is glibc's, code here accesses the bytes that glibc writes only in cells.
unsafe impl Sync for Mutex {}

const _: () = assert!(size_of::<Mutex>() == size_of::<libc::pthread_mutex_t>());

const NORMAL: i32 = libc::PTHREAD_MUTEX_NORMAL;
const RECURSIVE: i32 = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: i32 = libc::PTHREAD_MUTEX_ERRORCHECK;
const ADAPTIVE: i32 = 3;

// The accesses to `kind`, `owner` and `count` are Relaxed throughout. A mutex's kind is written by
// its initialiser, which the program orders before every use. A thread compares the owner with
// itself only, and reads its own number there only if it wrote it; the count belongs to the owner.

impl Mutex {
    #[inline]
    fn lock<L: InlineLock>(&self) -> &L {
        const { assert!(size_of::<L>() <= 16 && align_of::<L>() <= 8) };
        // SAFETY: the bytes belong to the lock since the initialiser zeroed them; `InlineLock`
        // promises that it fits, and that zero is an unlocked lock. The kind of lock is chosen once
        // for the process, before the first use.
        unsafe { &*self.lock.get().cast::<L>() }
    }

    /// Requests the mutex' line for writing. Otherwise, while other threads poll, the line would be
    /// transferred twice: to read the kind, and to write the lock.
    #[inline]
    fn ask_to_write(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect that the program can see, whatever the address, and does
        // nothing on a processor that does not know it. The compiler's own intrinsic becomes a
        // prefetch for reading.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) self, options(nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch changes nothing that the program can see, whatever the address.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) self, options(nostack, preserves_flags));
        }
    }

    #[inline]
    fn kind(&self) -> i32 {
        self.kind.load(Ordering::Relaxed)
    }

    /// Whether acquiring takes no look at the owner.
    #[inline]
    fn is_plain(&self) -> bool {
        matches!(self.kind(), NORMAL | ADAPTIVE)
    }

    fn as_glibc(&self) -> *mut c_void {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Whether the lock is in here, and not glibc's.
    pub fn is_ours(&self) -> bool {
        matches!(self.kind(), NORMAL | RECURSIVE | ERRORCHECK | ADAPTIVE)
    }

    #[inline]
    fn set_owner(&self, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
    }

    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == owner::id()
    }

    /// The result of acquiring a recursive or errorcheck mutex that the calling thread already has.
    fn relock(&self, busy: c_int) -> c_int {
        if self.kind() != RECURSIVE {
            return busy;
        }
        match self.count.load(Ordering::Relaxed).checked_add(1) {
            Some(count) => {
                self.count.store(count, Ordering::Relaxed);
                0
            }
            None => EAGAIN,
        }
    }

    /// The mutex as statistics see it.
    #[inline]
    fn object(&self, caller: usize) -> Object<'_> {
        let kind = match self.kind() {
            RECURSIVE => Kind::Recursive,
            ERRORCHECK => Kind::ErrorCheck,
            ADAPTIVE => Kind::Adaptive,
            _ => Kind::Mutex,
        };
        Object { address: core::ptr::from_ref(self).cast(), record: &self.record, kind, caller }
    }

    /// Counts an acquisition.
    #[inline]
    fn count(&self, caller: usize, attempt: Attempt) {
        stats::acquired(&self.object(caller), Mode::Exclusive, attempt, Some(&self.last_cpu));
    }

    /// Notes the start of a wait.
    fn wait(&self, caller: usize, attempt: Attempt) -> Wait {
        let owner = self.owner.load(Ordering::Relaxed);
        Wait::for_lock(&self.object(caller), owner, Mode::Exclusive, attempt)
    }

    #[inline]
    fn taken(&self) -> c_int {
        self.set_owner(owner::id());
        0
    }

    fn taken_first(&self) -> c_int {
        self.count.store(1, Ordering::Relaxed);
        self.taken()
    }
}

/// glibc's marks for lock elision in a kind. They do not affect how the mutex behaves.
const ELISION: i32 = 256 | 512;

/// The number of the record of a mutex that the calling thread has locked; 0 for a mutex of
/// glibc's.
///
/// # Safety
///
/// The mutex lives.
pub unsafe fn number(m: *const Mutex) -> u32 {
    // SAFETY: the mutex lives (contract of this function); references to one are shared only.
    let mutex = unsafe { &*m };
    // Relaxed: given at the latest by the calling thread's lock.
    if mutex.is_ours() { mutex.record.load(Ordering::Relaxed) } else { 0 }
}

/// `pthread_mutex_init`: glibc reads the attributes and leaves either a mutex of its own or a kind
/// and zeros.
///
/// # Safety
///
/// As POSIX requires. This holds for all functions of this module.
pub unsafe extern "C-unwind" fn init<const STATS: bool>(
    m: *mut Mutex,
    attr: *const libc::pthread_mutexattr_t,
    caller: usize,
) -> c_int {
    // SAFETY: the memory is the program's to be initialised as a mutex, and the attributes are null
    // or initialised (contract of this function).
    let (result, mutex) = unsafe { (glibc::pthread_mutex_init(m.cast(), attr), &*m) };
    if result == 0 {
        mutex.kind.store(mutex.kind() & !ELISION, Ordering::Relaxed);
        if STATS && mutex.is_ours() {
            stats::initialised(&mutex.record, caller);
        }
    }
    result
}

/// `pthread_mutex_destroy`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn destroy<const STATS: bool>(m: *mut Mutex) -> c_int {
    // SAFETY: the mutex is initialised, and no thread uses it (POSIX' contract, and this
    // function's).
    let mutex = unsafe { &*m };
    if mutex.is_ours() && mutex.owner.load(Ordering::Relaxed) != 0 {
        return EBUSY;
    }
    if STATS && mutex.is_ours() {
        stats::destroyed(&mutex.record);
    }
    // SAFETY: `m` is a mutex of the program's (contract of this function). If it is one of ours,
    // glibc sees an unused mutex, and marks it as destroyed.
    unsafe { glibc::pthread_mutex_destroy(m.cast()) }
}

/// `pthread_mutex_lock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn lock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    caller: usize,
) -> c_int {
    // SAFETY: the mutex is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let mutex = unsafe { &*m };
    mutex.ask_to_write();
    if !mutex.is_plain() {
        return lock_other::<L, STATS>(mutex, caller);
    }
    acquire::<L, STATS>(mutex, caller);
    mutex.taken()
}

#[cold]
fn lock_other<L: InlineLock, const STATS: bool>(mutex: &Mutex, caller: usize) -> c_int {
    if !mutex.is_ours() {
        // SAFETY: its kind is not one of ours, so that glibc has initialised and owns it; the
        // program may lock it (contract of the two functions that call this).
        return unsafe { glibc::pthread_mutex_lock(mutex.as_glibc()) };
    }
    if mutex.is_mine() {
        return mutex.relock(EDEADLK);
    }
    acquire::<L, STATS>(mutex, caller);
    mutex.taken_first()
}

/// `pthread_mutex_trylock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn trylock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    caller: usize,
) -> c_int {
    // SAFETY: the mutex is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let mutex = unsafe { &*m };
    if !mutex.is_ours() {
        // SAFETY: its kind is not one of ours, so that glibc has initialised and owns it; the
        // program may lock it (contract of this function).
        return unsafe { glibc::pthread_mutex_trylock(m.cast()) };
    }
    if !mutex.is_plain() && mutex.is_mine() {
        return mutex.relock(EBUSY);
    }
    if !mutex.lock::<L>().try_acquire() {
        return EBUSY;
    }
    if STATS {
        mutex.count(caller, Attempt::GivesUp);
    }
    if mutex.is_plain() { mutex.taken() } else { mutex.taken_first() }
}

/// `pthread_mutex_timedlock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn timedlock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the mutex is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let mutex = unsafe { &*m };
    if !mutex.is_ours() {
        // SAFETY: its kind is not one of ours, so that glibc has initialised and owns it; `until`
        // leads to a time (contract of this function).
        return unsafe { glibc::pthread_mutex_timedlock(m.cast(), until) };
    }
    // SAFETY: `until` leads to a time (contract of this function).
    unsafe { lock_until::<L, STATS>(mutex, libc::CLOCK_REALTIME, until, caller) }
}

/// `pthread_mutex_clocklock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn clocklock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the mutex is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let mutex = unsafe { &*m };
    if !mutex.is_ours() {
        // SAFETY: its kind is not one of ours, so that glibc has initialised and owns it; `until`
        // leads to a time (contract of this function).
        return unsafe { glibc::pthread_mutex_clocklock(m.cast(), clock, until) };
    }
    if !time::is_supported(clock) {
        return EINVAL;
    }
    // SAFETY: `until` leads to a time (contract of this function).
    unsafe { lock_until::<L, STATS>(mutex, clock, until, caller) }
}

/// # Safety
///
/// `until` points to a timespec.
unsafe fn lock_until<L: InlineLock, const STATS: bool>(
    mutex: &Mutex,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    if !mutex.is_plain() && mutex.is_mine() {
        return mutex.relock(EDEADLK);
    }
    let lock = mutex.lock::<L>();
    if !lock.try_acquire() {
        // As in glibc, a free mutex is acquired whatever the deadline is, and seconds before the
        // epoch are past whatever the nanoseconds are.
        // SAFETY: `until` leads to a time (contract of this function).
        if unsafe { (*until).tv_sec } < 0 {
            return ETIMEDOUT;
        }
        // SAFETY: `until` leads to a time (contract of this function).
        let Some(deadline) = (unsafe { time::deadline(clock, until) }) else { return EINVAL };
        let wait = STATS.then(|| mutex.wait(caller, Attempt::GivesUp));
        let acquired = lock.acquire_until(deadline);
        if let Some(wait) = wait {
            wait.end(Mode::Exclusive, !acquired);
        }
        if !acquired {
            return ETIMEDOUT;
        }
    }
    if STATS {
        mutex.count(caller, Attempt::GivesUp);
    }
    if mutex.is_plain() { mutex.taken() } else { mutex.taken_first() }
}

/// `pthread_mutex_unlock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn unlock<L: InlineLock, const STATS: bool>(m: *mut Mutex) -> c_int {
    // SAFETY: the mutex is initialised, and lives during the call (contract of this function, that
    // of POSIX).
    let mutex = unsafe { &*m };
    mutex.ask_to_write();
    if !mutex.is_plain() {
        return unlock_other::<L, STATS>(mutex);
    }
    mutex.set_owner(0);
    release::<L, STATS>(mutex);
    0
}

#[cold]
fn unlock_other<L: InlineLock, const STATS: bool>(mutex: &Mutex) -> c_int {
    if !mutex.is_ours() {
        // SAFETY: its kind is not one of ours, so that glibc has initialised and owns it; the
        // program holds it (contract of `unlock`).
        return unsafe { glibc::pthread_mutex_unlock(mutex.as_glibc()) };
    }
    if !mutex.is_mine() {
        return EPERM;
    }
    let count = mutex.count.load(Ordering::Relaxed) - 1;
    mutex.count.store(count, Ordering::Relaxed);
    if count == 0 {
        mutex.set_owner(0);
        release::<L, STATS>(mutex);
    }
    0
}

#[inline]
fn acquire<L: InlineLock, const STATS: bool>(mutex: &Mutex, caller: usize) {
    let lock = mutex.lock::<L>();
    if lock.try_acquire() {
        if STATS {
            mutex.count(caller, Attempt::Waits);
        }
    } else if STATS {
        let wait = mutex.wait(caller, Attempt::Waits);
        lock.acquire_contended();
        wait.end(Mode::Exclusive, false);
        mutex.count(caller, Attempt::Waits);
    } else {
        lock.acquire_contended();
    }
}

#[inline]
fn release<L: InlineLock, const STATS: bool>(mutex: &Mutex) {
    if STATS {
        stats::releasing(core::ptr::from_ref(mutex).cast(), &mutex.record);
    }
    // SAFETY: the thread that unlocks the mutex holds it (contract of `unlock`, that of POSIX), by
    // an acquisition of this lock.
    unsafe { mutex.lock::<L>().release() };
}
