//! The end of threads: ours must not keep the program alive.
//!
//! A process ends when its last thread does. libc counts threads, including ours. So when the
//! program's last own thread ends, ours are made to end first, and libc finds that only that thread
//! is left.

use core::ffi::c_void;

use manycore_interpose::threads::count;
use manycore_stats::syscalls::Outcome;
use syscalls::{Sysno, raw_syscall};

use crate::table::OFFLOAD;
use crate::{moved, program_threads, state, thread};

/// If destructors of thread-specific data set the data again, they are called again, up to this
/// many times.
const ROUNDS: usize = 4;

/// Arranges that the end of the calling thread, the process' first, is noticed.
pub fn prepare() {
    program_threads::notice_ends(ends);
}

/// Called at the end of a thread of the program. Destructors of other keys may still make calls;
/// ours act in the last round.
///
/// # Safety
///
/// None: pthreads passes the key's value, which is never dereferenced. Unsafe because pthreads
/// requires it.
unsafe extern "C" fn ends(round: *mut c_void) {
    let round = round.addr();
    if round < ROUNDS {
        return program_threads::notice_end(round + 1);
    }
    if is_last() {
        end_ours();
    }
}

/// Notes that the calling thread of the program makes no calls any more; returns whether it was the
/// last such thread.
fn is_last() -> bool {
    moved::give_back_kept();
    program_threads::ends()
}

/// Notes that the calling thread will end without libc's knowledge. If it is the program's last
/// one, the process ends as soon as our threads, and the kernel's for us, have ended.
pub fn leaves() {
    // A child that has made no call yet has none of the threads that its parent has.
    let _ = state::check();
    if thread::shares_memory() {
        return;
    }
    if let Some(flight) = thread::in_flight() {
        // SAFETY: the call is on this thread's stack, and no part of it is in use: the handler that
        // interrupted it does not return.
        moved::jumped_out(unsafe { &mut *flight });
    }
    // Without our threads there is nothing to do. A process may also be forbidden all calls except
    // those to end.
    if is_last() && OFFLOAD.threads() > 0 {
        end_all();
    }
}

/// Ends all our threads, and waits until they have ended: they are few, and none executes a call of
/// the program's. If they do not end, the process stays, as with any other thread that does not
/// end.
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
    program_threads::count() == 1 && OFFLOAD.threads() > 0
}

/// Ends all our threads permanently if the calling thread is the program's only one: the kernel
/// makes some changes only for a process with one thread. Returns whether the thread is alone now,
/// and was not before.
#[cold]
pub fn leave_alone() -> bool {
    if !are_ours_alone() || thread::check().is_err() {
        return false;
    }
    state::end(Outcome::ThreadState);
    end_all()
}

/// Ends all our threads, and the kernel's for us; returns whether the calling one is alone then.
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

/// Waits until the process has no more threads than `most`. A second is more than our threads need
/// to end.
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
