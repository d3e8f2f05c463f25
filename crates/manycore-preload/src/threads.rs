//! `pthread_create`: watched only to warn when a strict FIFO lock has more threads than CPUs.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use manycore::lock::InlineLock;
use manycore::sync::cpu;
use manycore_interpose::message;
use manycore_interpose::next::Function;
use manycore_interpose::threads::count;

/// What a thread runs.
type Run = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// That of the library that comes next: the one for system calls counts threads, and may come after this one.
static NEXT: Function = Function::of_any_library(c"pthread_create");

/// `pthread_create`.
///
/// # Safety
///
/// As POSIX says.
pub unsafe extern "C-unwind" fn create<L: InlineLock>(
    thread: *mut libc::pthread_t,
    attr: *const libc::pthread_attr_t,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    if const { L::INFO.order.hands_over() } {
        warn::<L>();
    }
    type Create = unsafe extern "C-unwind" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Run,
        *mut c_void,
    ) -> c_int;
    // SAFETY: a function of this name has this signature.
    let create: Create = unsafe { core::mem::transmute(NEXT.address()) };
    // SAFETY: passed on.
    unsafe { create(thread, attr, run, argument) }
}

/// Says once that a thread more than the CPUs makes each hand-off wait for the scheduler.
#[cold]
fn warn<L: InlineLock>() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // Relaxed, both: at worst two threads warn.
    if WARNED.load(Ordering::Relaxed) || count() < cpu::count() {
        return;
    }
    if !WARNED.swap(true, Ordering::Relaxed) {
        message::say(&[
            b"the program has more threads than CPUs: '",
            L::INFO.name.as_bytes(),
            b"' passes the lock on to one thread at a time, and may have to wait for one that does not run",
        ]);
    }
}
