//! `pthread_spinlock_t`, in glibc's own encoding: 1 is free, 0 and below is held.
//!
//! A spinlock does not show whether it is shared with another process, which may not have this
//! library. So the word has the same meaning as in glibc. Only the waiting differs: it polls
//! without writing, and gives up its slice after a while, since with more threads than CPUs the
//! holder may not be running.

use core::ffi::c_int;

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use libc::EBUSY;
use manycore::sync::hint;
use manycore_stats::Kind;

use crate::stats::{self, Attempt, Mode, Object, Wait};

const FREE: i32 = 1;
const HELD: i32 = 0;

/// A spinlock does not show its owner.
const UNKNOWN: u32 = 0;

/// How often a thread polls before it yields its CPU: a few microseconds.
const POLLS: u32 = 200;

/// `pthread_spin_init`.
///
/// # Safety
///
/// As POSIX requires. This holds for all functions of this module.
pub unsafe extern "C" fn init<const STATS: bool>(
    lock: *mut AtomicI32,
    _shared: c_int,
    caller: usize,
) -> c_int {
    // SAFETY: the memory is the program's to be initialised as a spinlock, a number (contract of
    // this function).
    let lock = unsafe { &*lock };
    // Relaxed: initialised before it is shared.
    lock.store(FREE, Ordering::Relaxed);
    if STATS && !core::ptr::eq(record(lock), &OTHERS) {
        // The earlier lock at this address was never destroyed.
        stats::destroyed(record(lock));
        stats::initialised(record(lock), caller);
    }
    0
}

/// `pthread_spin_destroy`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C" fn destroy(_lock: *mut AtomicI32) -> c_int {
    0
}

/// `pthread_spin_lock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C" fn lock<const STATS: bool>(lock: *mut AtomicI32, caller: usize) -> c_int {
    // SAFETY: the spinlock is initialised, and lives during the call (contract of this function,
    // that of POSIX).
    let lock = unsafe { &*lock };
    if !take(lock) {
        let waiting = STATS.then(|| {
            Wait::for_lock(&object(lock, caller), UNKNOWN, Mode::Exclusive, Attempt::Waits)
        });
        wait(lock);
        if let Some(waiting) = waiting {
            waiting.end(Mode::Exclusive, false);
        }
    }
    if STATS {
        stats::acquired(&object(lock, caller), Mode::Exclusive, Attempt::Waits, None);
    }
    0
}

#[cold]
fn wait(lock: &AtomicI32) {
    loop {
        let mut polls = 0;
        // Relaxed: `take` decides and orders.
        while lock.load(Ordering::Relaxed) != FREE {
            hint::spin_loop();
            polls += 1;
            if polls % POLLS == 0 {
                hint::yield_now();
            }
        }
        if take(lock) {
            return;
        }
    }
}

/// `pthread_spin_trylock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C" fn trylock<const STATS: bool>(lock: *mut AtomicI32, caller: usize) -> c_int {
    // SAFETY: the spinlock is initialised, and lives during the call (contract of this function,
    // that of POSIX).
    let lock = unsafe { &*lock };
    if !take(lock) {
        return EBUSY;
    }
    if STATS {
        stats::acquired(&object(lock, caller), Mode::Exclusive, Attempt::GivesUp, None);
    }
    0
}

/// `pthread_spin_unlock`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C" fn unlock<const STATS: bool>(lock: *mut AtomicI32) -> c_int {
    // SAFETY: the spinlock is initialised, and lives during the call (contract of this function,
    // that of POSIX).
    let lock = unsafe { &*lock };
    if STATS {
        stats::releasing(core::ptr::from_ref(lock).cast(), record(lock));
    }
    // Release: partner of the Acquire in `take`.
    lock.store(FREE, Ordering::Release);
    0
}

#[inline]
fn take(lock: &AtomicI32) -> bool {
    // Acquire: partner of the Release in `unlock`, and of glibc's unlock in another process. A
    // swap, since glibc counts below zero while it spins.
    lock.swap(HELD, Ordering::Acquire) == FREE
}

/// The lock as statistics see it.
fn object(lock: &AtomicI32, caller: usize) -> Object<'_> {
    Object {
        address: core::ptr::from_ref(lock).cast(),
        record: record(lock),
        kind: Kind::Spin,
        caller,
    }
}

const LOCKS: usize = 1_024;

/// A spinlock's four bytes have no room for its record's number: this table has the numbers of the
/// first thousand, by address.
static RECORDS: [(AtomicUsize, AtomicU32); LOCKS] =
    [const { (AtomicUsize::new(0), AtomicU32::new(0)) }; LOCKS];

/// All others share one.
static OTHERS: AtomicU32 = AtomicU32::new(0);

fn record(lock: &AtomicI32) -> &'static AtomicU32 {
    let address = core::ptr::from_ref(lock) as usize;
    let first = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    for probe in 0..8 {
        let (owner, record) = &RECORDS[(first + probe) % LOCKS];
        // Relaxed, both: a place is given away once, permanently, and no other data depends on it.
        let found = owner.load(Ordering::Relaxed);
        let given = found == 0
            && owner
                .compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|a| a == address, |_| true);
        if found == address || given {
            return record;
        }
    }
    &OTHERS
}
