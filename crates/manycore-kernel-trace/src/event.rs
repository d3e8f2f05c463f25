//! Perf events, by which tracepoints are reached.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::perf_event_open;

/// Opens an event of a task, or of all tasks (-1), on a CPU.
pub fn open(attributes: &perf_event_attr, task: i32, cpu: i32) -> io::Result<OwnedFd> {
    let mut attributes = *attributes;
    // SAFETY: the attributes are a structure of ours, with its size in it, which the kernel reads.
    let fd = unsafe {
        perf_event_open(&raw mut attributes, task, cpu, -1, u64::from(PERF_FLAG_FD_CLOEXEC))
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, and no other code has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
