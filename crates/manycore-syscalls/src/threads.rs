//! Threads: ours are made past the program's eyes, and must not keep it alive.
//!
//! A process ends when its last thread does. libc counts threads, ours too; so when the program's last own thread
//! ends, ours are made to end first, and libc finds that none is left but that one.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use manycore::sync::clock;
use manycore_interpose::threads::count;
use manycore_stats::syscalls::Outcome;
use syscalls::{Sysno, raw_syscall};

use crate::calls::ties;
use crate::descriptors::OFFLOAD;
use crate::real::{self, Run, RunC11};
use crate::{handlers, moved, state, thread};

/// The program's own threads that have begun and not ended.
static OWN: AtomicU32 = AtomicU32::new(1);

/// How many threads the program has, as far as it made them itself.
pub fn own() -> u32 {
    OWN.load(Ordering::Relaxed) // Relaxed: the caller is one
}

/// The key of the value by which a thread's end is noticed, plus one; 0 for none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Destructors of thread-specific data are called so often for a thread that sets them again.
const ROUNDS: usize = 4;

/// So that the end of the calling thread, the process' first, is noticed.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the destructor is a function of this library, which is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0 {
        // Relaxed: set before there is another thread.
        KEY.store(key + 1, Ordering::Relaxed);
        notice_end(1);
    }
}

/// Has [`ends`] called when the calling thread ends.
fn notice_end(round: usize) {
    // Relaxed: as above.
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key is this library's own, and not deleted; the value is a number, which
        // nobody follows.
        unsafe { libc::pthread_setspecific(key, core::ptr::without_provenance(round)) };
    }
}

/// A thread of the program's ends. Other destructors may still make calls: the last round is ours.
///
/// # Safety
///
/// None that the number does not fulfil: pthreads passes the key's value, which is never followed.
/// Unsafe, as pthreads asks for.
unsafe extern "C" fn ends(round: *mut c_void) {
    let round = round.addr();
    if round < ROUNDS {
        return notice_end(round + 1);
    }
    if is_last() {
        end_ours();
    }
}

/// The calling thread of the program's makes no call any more: whether no other one is left.
fn is_last() -> bool {
    moved::give_back_kept();
    // AcqRel: the last one comes after all that the others did.
    OWN.fetch_sub(1, Ordering::AcqRel) == 1
}

/// The calling thread is about to end without libc's knowledge: if it is the last one the process ends when there is none of ours, either, nor
/// one of the kernel's.
pub fn leaves() {
    // A child that has made no call yet has none of the threads that its parent has.
    let _ = state::check();
    if thread::shares_memory() {
        return;
    }
    if let Some(flight) = thread::in_flight() {
        // SAFETY: the call is on this thread's stack, and nothing of it is in use: the handler that
        // interrupted it does not return.
        moved::jumped_out(unsafe { &mut *flight });
    }
    // Without threads there is nothing to do, and a process may be forbidden to do more than end.
    if is_last() && OFFLOAD.threads() > 0 {
        end_all();
    }
}

/// Has all our threads end, and waits until they have: they are few, and none has a call of the program's. If they do not, the process
/// stays, as it would if it had threads that nobody ends.
#[cold]
fn end_ours() {
    let ours = OFFLOAD.threads();
    if ours > 0 {
        let others = count().saturating_sub(ours);
        OFFLOAD.retire();
        await_threads(others);
    }
}

/// Whether there are threads of ours, and one of the program's.
pub fn are_ours_alone() -> bool {
    own() == 1 && OFFLOAD.threads() > 0
}

/// Has all our threads end, for good, where the calling one is the program's only one: some changes the kernel makes for a process with
/// one thread only. Says whether it is alone now, and was not before.
#[cold]
pub fn leave_alone() -> bool {
    if !are_ours_alone() || thread::check().is_err() {
        return false;
    }
    state::end(Outcome::ThreadState);
    end_all()
}

/// Has all our threads end, and the kernel's for us; says whether the calling one is alone then.
fn end_all() -> bool {
    end_ours();
    if OFFLOAD.threads() > 0 {
        return false;
    }
    // SAFETY: the program's last thread ends, so that no call is in flight, and our threads, which
    // would have listened, have ended.
    unsafe { OFFLOAD.close_rings() };
    await_threads(1)
}

/// Waits until the process has no more threads than these: a second, which ours never need.
fn await_threads(most: u32) -> bool {
    for _ in 0..1000 {
        if count() <= most {
            return true;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let none = core::ptr::null_mut::<libc::timespec>();
        // SAFETY: the kernel reads the time, and is given no place to write to.
        unsafe { raw_syscall!(Sysno::nanosleep, &raw const pause, none) };
    }
    false
}

/// In the child of a fork, by its one thread.
pub fn forked() {
    // Relaxed: there is one thread.
    OWN.store(1, Ordering::Relaxed);
    notice_end(1);
}

/// What a new thread is to run.
struct Start<R> {
    run: R,
    argument: *mut c_void,
}

/// Takes the start from where it was put, and notes that the thread runs.
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
    notice_end(1);
    (run, argument)
}

/// Puts a start where the new thread finds it, and counts the thread; null if there is no memory.
fn put<R>(run: R, argument: *mut c_void) -> *mut c_void {
    // SAFETY: `malloc` returns memory for any type of this size, or null.
    let start = unsafe { libc::malloc(size_of::<Start<R>>()) }.cast::<Start<R>>();
    if !start.is_null() {
        // SAFETY: it is not null, and so as large as a `Start<R>`, aligned for it, and in no other
        // use.
        unsafe { start.write(Start { run, argument }) };
        OWN.fetch_add(1, Ordering::Relaxed); // Relaxed: by a thread that is counted itself
    }
    start.cast()
}

/// The thread was not made.
///
/// # Safety
///
/// `start` comes from [`put`], and no thread has it.
unsafe fn take_back(start: *mut c_void) {
    OWN.fetch_sub(1, Ordering::Relaxed); // Relaxed: the calling thread is counted
    // SAFETY: `put` has allocated it, and no thread has it (contract of this function).
    unsafe { libc::free(start) };
}

extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` has passed what `put` made of a `Run`, to this thread only.
    let (run, argument) = unsafe { take::<Run>(start) };
    run(argument)
}

extern "C-unwind" fn begin_c11(start: *mut c_void) -> c_int {
    // SAFETY: `thrd_create` has passed what `put` made of a `RunC11`, to this thread only.
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

/// When there was last no thread to be had, in ticks; 0: never.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// So many ticks, some milliseconds, no other is asked for then: where threads cannot be made, each call would try.
const PAUSE: u64 = 1 << 24;

/// Whether a thread of ours may be made now, see [`crate::offload::settings::MayCreateThread`]: not for a call that a signal handler may make.
///
/// # Safety
///
/// That of [`crate::offload::settings::MayCreateThread`].
pub unsafe extern "C" fn may_create_own(blocked: u64) -> bool {
    let refused = REFUSED.load(Ordering::Relaxed); // Relaxed: a number that stands for itself
    if refused != 0 && !clock::has_passed(refused, PAUSE) {
        return false;
    }
    // A thread of ours would have what the caller has.
    match policy() {
        // It would either keep others off its CPU or not be let onto it: a program that runs in real time makes its calls itself.
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE => {
            state::end(Outcome::ThreadState);
            return false;
        }
        // It would run when nobody else wants to: others, that wait for it, are to make it.
        libc::SCHED_IDLE if own() > 1 => {
            REFUSED.store(clock::now(), Ordering::Relaxed); // Relaxed: as above
            return false;
        }
        _ => {}
    }
    let here = thread::in_flight().map_or(0, |call| call.addr());
    !handlers::may_run(here, blocked)
}

/// How the calling thread is scheduled.
fn policy() -> c_int {
    // SAFETY: `sched_getscheduler` takes a number and changes nothing in memory.
    let policy = unsafe { raw_syscall!(Sysno::sched_getscheduler, 0) } as c_int;
    policy & !libc::SCHED_RESET_ON_FORK
}

/// A thread of ours, see [`crate::offload::settings::CreateThread`]: detached, and with a small stack.
///
/// # Safety
///
/// That of [`crate::offload::settings::CreateThread`].
pub unsafe extern "C" fn create_own(
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    /// Thread-local storage of all libraries is part of it.
    const STACK_BYTES: usize = 256 << 10;
    // SAFETY: the attributes are initialised here before they are used; the function is the
    // worker's, which takes this argument and does not unwind.
    unsafe {
        let mut attr = core::mem::zeroed();
        let failed = libc::pthread_attr_init(&raw mut attr);
        if failed != 0 {
            return failed;
        }
        libc::pthread_attr_setdetachstate(&raw mut attr, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&raw mut attr, STACK_BYTES);
        let run: Run = core::mem::transmute(run);
        let mut thread = 0;
        let failed = real::pthread_create(&raw mut thread, &raw const attr, run, argument);
        libc::pthread_attr_destroy(&raw mut attr);
        if failed != 0 {
            REFUSED.store(clock::now(), Ordering::Relaxed); // Relaxed: as above
        }
        failed
    }
}
