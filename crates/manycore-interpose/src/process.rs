//! Who the calling process is. The kernel is asked each time: libc may remember the parent's answer
//! in the child of a fork past it.

use syscalls::{Sysno, raw_syscall};

/// The process' number, in its own namespace.
pub fn id() -> u32 {
    // SAFETY: `getpid` takes no arguments, and changes nothing in memory.
    unsafe { raw_syscall!(Sysno::getpid) as u32 }
}

/// Its parent's; 0 if the parent is in another namespace.
pub fn parent() -> u32 {
    // SAFETY: `getppid` takes no arguments, and changes nothing in memory.
    unsafe { raw_syscall!(Sysno::getppid) as u32 }
}
