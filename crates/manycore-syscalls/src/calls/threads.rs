//! Threads that the program makes: each is counted, and its end is noticed.

use core::ffi::{c_int, c_void};

use super::ties;
use crate::real::{self, Run, RunC11};
use crate::{program_threads, thread};

/// What a new thread is to run.
struct Start<R> {
    run: R,
    argument: *mut c_void,
}

/// Takes the thread's start out of its slot, and notes that the thread runs.
///
/// # Safety
///
/// `start` comes from [`put`], with the same type.
unsafe fn take<R: Copy>(start: *mut c_void) -> (R, *mut c_void) {
    // SAFETY: `put` has written a `Start<R>` there (contract of this function), which is taken
    // once.
    let Start { run, argument } = unsafe { start.cast::<Start<R>>().read() };
    // SAFETY: `put` has allocated it, and it is not touched again.
    unsafe { libc::free(start) };
    thread::begins();
    program_threads::notice_end(1);
    (run, argument)
}

/// Stores a start for the new thread, and counts the thread; null if there is no memory.
fn put<R>(run: R, argument: *mut c_void) -> *mut c_void {
    // SAFETY: `malloc` returns memory for any type of this size, or null.
    let start = unsafe { libc::malloc(size_of::<Start<R>>()) }.cast::<Start<R>>();
    if !start.is_null() {
        // SAFETY: it is not null, and so it is as large as a `Start<R>`, aligned for it, and in no
        // other use.
        unsafe { start.write(Start { run, argument }) };
        program_threads::begins();
    }
    start.cast()
}

/// The thread was not made.
///
/// # Safety
///
/// `start` comes from [`put`], and no thread has it.
unsafe fn take_back(start: *mut c_void) {
    program_threads::has_not_begun();
    // SAFETY: `put` has allocated it, and no thread has it (contract of this function).
    unsafe { libc::free(start) };
}

extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` has passed `put`'s result for a `Run`, to this thread only.
    let (run, argument) = unsafe { take::<Run>(start) };
    run(argument)
}

extern "C-unwind" fn begin_c11(start: *mut c_void) -> c_int {
    // SAFETY: `thrd_create` has passed `put`'s result for a `RunC11`, to this thread only.
    let (run, argument) = unsafe { take::<RunC11>(start) };
    run(argument)
}

/// `pthread_create`.
///
/// # Safety
///
/// As POSIX says.
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut libc::pthread_t,
    attr: *const libc::pthread_attr_t,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    let start = put(run, argument);
    if start.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: the attributes are null or initialised (contract of this function).
    let is_tying = unsafe { schedules_otherwise(attr) };
    // SAFETY: the program's arguments are those of `pthread_create` (contract of this function);
    // the start is the new thread's.
    let failed = unsafe { real::pthread_create(thread, attr, begin, start) };
    if failed != 0 {
        // SAFETY: no thread was made, so that none has the start.
        unsafe { take_back(start) };
    } else if is_tying {
        ties::tie();
    }
    failed
}

unsafe extern "C" {
    fn pthread_attr_getinheritsched(
        attr: *const libc::pthread_attr_t,
        inherits: *mut c_int,
    ) -> c_int;
    fn pthread_attr_getschedpolicy(attr: *const libc::pthread_attr_t, policy: *mut c_int) -> c_int;
}

/// Whether a thread with these attributes is not scheduled as threads are.
///
/// # Safety
///
/// Null, or attributes that are initialised.
unsafe fn schedules_otherwise(attr: *const libc::pthread_attr_t) -> bool {
    const PTHREAD_INHERIT_SCHED: c_int = 0;
    let (mut inherits, mut policy) = (PTHREAD_INHERIT_SCHED, libc::SCHED_OTHER);
    if !attr.is_null() {
        // SAFETY: the attributes are not null, and so initialised (contract of this function); both
        // functions write a number.
        unsafe {
            pthread_attr_getinheritsched(attr, &raw mut inherits);
            pthread_attr_getschedpolicy(attr, &raw mut policy);
        }
    }
    inherits != PTHREAD_INHERIT_SCHED && policy != libc::SCHED_OTHER
}

/// `thrd_create`.
///
/// # Safety
///
/// As C11 says.
pub unsafe extern "C-unwind" fn thrd_create(
    thread: *mut libc::pthread_t,
    run: RunC11,
    argument: *mut c_void,
) -> c_int {
    const NO_MEMORY: c_int = 3;
    let start = put(run, argument);
    if start.is_null() {
        return NO_MEMORY;
    }
    // SAFETY: the program's arguments are those of `thrd_create` (contract of this function); the
    // start is the new thread's.
    let failed = unsafe { real::thrd_create(thread, begin_c11, start) };
    if failed != 0 {
        // SAFETY: no thread was made, so that none has the start.
        unsafe { take_back(start) };
    }
    failed
}
