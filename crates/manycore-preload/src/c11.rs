//! C11's `mtx_t` and `cnd_t`: the pthread objects under other names, with other result codes.
//!
//! glibc's own C11 functions call its pthread functions directly, past any interposed library;
//! hence these.

use core::ffi::{c_int, c_void};

use libc::{EBUSY, ENOMEM, ETIMEDOUT, timespec};
use manycore::lock::InlineLock;

use crate::cond::{self, Cond};
use crate::mutex::{self, Mutex};

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

const RECURSIVE: c_int = 1;
const TIMED: c_int = 2;

fn code(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        EBUSY => BUSY,
        ENOMEM => NO_MEMORY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// `mtx_init`.
///
/// # Safety
///
/// As C11 requires. This holds for all functions of this module.
pub unsafe extern "C-unwind" fn mtx_init<const STATS: bool>(
    m: *mut Mutex,
    kind: c_int,
    caller: usize,
) -> c_int {
    // As in glibc, a kind that C11 does not have is a plain mutex.
    let recursive = kind & !TIMED == RECURSIVE;
    // SAFETY: the attributes live on this stack, and are initialised before they are set and read;
    // `m` may be initialised as a mutex, which has the size of an `mtx_t` (contract of this
    // function).
    unsafe {
        let mut attr: libc::pthread_mutexattr_t = core::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attr);
        let kind =
            if recursive { libc::PTHREAD_MUTEX_RECURSIVE } else { libc::PTHREAD_MUTEX_NORMAL };
        libc::pthread_mutexattr_settype(&mut attr, kind);
        code(mutex::init::<STATS>(m, &attr, caller))
    }
}

/// `mtx_destroy`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn mtx_destroy<const STATS: bool>(m: *mut Mutex) {
    // SAFETY: `m` is a mutex for which C11 allows this call (contract of this function): POSIX
    // allows it for the `pthread_mutex_t` that it is in glibc.
    unsafe { mutex::destroy::<STATS>(m) };
}

/// `mtx_lock`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn mtx_lock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    caller: usize,
) -> c_int {
    // SAFETY: `m` is a mutex for which C11 allows this call (contract of this function): POSIX
    // allows it for the `pthread_mutex_t` that it is in glibc.
    code(unsafe { mutex::lock::<L, STATS>(m, caller) })
}

/// `mtx_trylock`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn mtx_trylock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    caller: usize,
) -> c_int {
    // SAFETY: `m` is a mutex for which C11 allows this call (contract of this function): POSIX
    // allows it for the `pthread_mutex_t` that it is in glibc.
    code(unsafe { mutex::trylock::<L, STATS>(m, caller) })
}

/// `mtx_timedlock`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn mtx_timedlock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: `m` is a mutex for which C11 allows this call (contract of this function): POSIX
    // allows it for the `pthread_mutex_t` that it is in glibc.
    code(unsafe { mutex::timedlock::<L, STATS>(m, until, caller) })
}

/// `mtx_unlock`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn mtx_unlock<L: InlineLock, const STATS: bool>(
    m: *mut Mutex,
) -> c_int {
    // SAFETY: `m` is a mutex for which C11 allows this call (contract of this function): POSIX
    // allows it for the `pthread_mutex_t` that it is in glibc.
    code(unsafe { mutex::unlock::<L, STATS>(m) })
}

/// `cnd_init`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_init<const STATS: bool>(c: *mut Cond, caller: usize) -> c_int {
    // SAFETY: `c` may be initialised (contract of this function), and there are no attributes.
    code(unsafe { cond::init::<STATS>(c, core::ptr::null(), caller) })
}

/// `cnd_destroy`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_destroy<const STATS: bool>(c: *mut Cond) {
    // SAFETY: `c` is a condition variable for which C11 allows this call (contract of this
    // function): POSIX allows it for the `pthread_cond_t` that it is in glibc.
    unsafe { cond::destroy::<STATS>(c) };
}

/// `cnd_wait`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_wait<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut c_void,
    caller: usize,
) -> c_int {
    // SAFETY: `c` and `m` are of their types, and the caller holds `m` (contract of this function),
    // as POSIX asks for.
    code(unsafe { cond::wait::<L, STATS>(c, m.cast(), caller) })
}

/// `cnd_timedwait`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_timedwait<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut c_void,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: `c` and `m` are of their types, the caller holds `m`, and `until` leads to a time
    // (contract of this function), as POSIX requires.
    code(unsafe { cond::timedwait::<L, STATS>(c, m.cast(), until, caller) })
}

/// `cnd_signal`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_signal<const STATS: bool>(
    c: *mut Cond,
    caller: usize,
) -> c_int {
    // SAFETY: `c` is a condition variable for which C11 allows this call (contract of this
    // function): POSIX allows it for the `pthread_cond_t` that it is in glibc.
    code(unsafe { cond::signal::<STATS>(c, caller) })
}

/// `cnd_broadcast`.
///
/// # Safety
///
/// See [`mtx_init`].
pub unsafe extern "C-unwind" fn cnd_broadcast<const STATS: bool>(
    c: *mut Cond,
    caller: usize,
) -> c_int {
    // SAFETY: `c` is a condition variable for which C11 allows this call (contract of this
    // function): POSIX allows it for the `pthread_cond_t` that it is in glibc.
    code(unsafe { cond::broadcast::<STATS>(c, caller) })
}
