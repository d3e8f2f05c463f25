//! Processes that `clone` makes: their shared resources, and their end.

use core::ffi::{c_int, c_void};

use libc::pid_t;
use manycore_stats::syscalls::Outcome;

use crate::real::{self, RunClone};
use crate::table::OFFLOAD;
use crate::{state, threads};

/// Notes the flags with which a process will be made. If it shares this one's memory, it would
/// mistake itself for this one. If it shares this one's descriptors, it can close them, and must
/// not mistake our workers' descriptors for copies.
pub fn note_flags(flags: usize) {
    let flags = flags as c_int;
    let has = |flag: c_int| flags & flag != 0;
    if !has(libc::CLONE_VM | libc::CLONE_FILES) || has(libc::CLONE_THREAD) {
        return;
    }
    // A child that was forked without libc's knowledge first forgets its parent's workers.
    let _ = state::check();
    state::end(Outcome::SharedMemory);
    if !has(libc::CLONE_VM) {
        OFFLOAD.share_descriptors();
    }
}

/// What a new process is to run.
#[derive(Clone, Copy)]
struct Start {
    run: RunClone,
    argument: *mut c_void,
}

/// `clone`. A process whose function returns ends when that thread ends, not when all its threads
/// do. So our threads have to end first.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn clone(
    run: RunClone,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: *mut pid_t,
    storage: *mut c_void,
    child: *mut pid_t,
) -> c_int {
    note_flags(flags as usize);
    if flags & libc::CLONE_VM != 0 {
        // SAFETY: the arguments are valid for libc's `clone` (contract of this function). A child
        // with this process' memory has no threads of ours.
        return unsafe { real::clone(run, stack, flags, argument, parent, storage, child) };
    }
    let mut start = Start { run, argument };
    let start = (&raw mut start).cast();
    // SAFETY: the arguments are valid for libc's `clone` (contract of this function); `begin` runs
    // in a copy of this memory, in which `start` has the same address as here.
    unsafe { real::clone(begin, stack, flags, start, parent, storage, child) }
}

extern "C-unwind" fn begin(start: *mut c_void) -> c_int {
    // SAFETY: `clone` has put the address of its `Start` there, whose memory was copied with this
    // process'.
    let Start { run, argument } = unsafe { *start.cast::<Start>() };
    let status = run(argument);
    threads::leaves();
    status
}
