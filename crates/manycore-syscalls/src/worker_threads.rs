//! The library's own threads. They are made past the program's `pthread_create`, and only where a
//! thread may be made.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use manycore::sync::clock;
use manycore_stats::syscalls::Outcome;
use syscalls::{Sysno, raw_syscall};

use crate::offload::raw::SLOWER;
use crate::real::{self, Run};
use crate::{handlers, program_threads, state, thread};

/// When the system last refused a thread, in ticks; 0: never.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// After a refusal, no thread requests another for this many ticks, some milliseconds. Otherwise
/// each call would try where threads cannot be made.
const PAUSE: u64 = 1 << (24 - SLOWER);

/// Whether one of our threads may be made now, see [`crate::offload::settings::MayCreateThread`]:
/// not for a call that a signal handler may make.
///
/// # Safety
///
/// The function for [`crate::offload::settings::MayCreateThread`].
pub unsafe extern "C" fn may_create(blocked: u64) -> bool {
    let refused = REFUSED.load(Ordering::Relaxed); // Relaxed: a number that stands for itself
    if refused != 0 && !clock::has_passed(refused, PAUSE) {
        return false;
    }
    // A thread of ours would have what the caller has.
    match policy() {
        // Such a thread would either keep others off its CPU or not get the CPU: a real-time
        // program executes its calls itself.
        libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE => {
            state::end(Outcome::ThreadState);
            return false;
        }
        // Such a thread would run only when no other thread wants to run, although others wait for
        // its call.
        libc::SCHED_IDLE if program_threads::count() > 1 => {
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

/// Makes one of our threads, see [`crate::offload::settings::CreateThread`]: detached, and with a
/// small stack.
///
/// # Safety
///
/// The function for [`crate::offload::settings::CreateThread`].
pub unsafe extern "C" fn create(
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
